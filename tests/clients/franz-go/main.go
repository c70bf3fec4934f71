// A franz-go client for the interop tests, as a program of its own. One JSON object a line on its output.
//
//	client member  BOOTSTRAP GROUP TOPIC STRATEGY SESSION_MS [INSTANCE [SPEED]]   what group_member.py says
//	client produce BOOTSTRAP TOPIC FIRST LAST                             records FIRST to LAST-1, key and value the number
//	client admin   BOOTSTRAP GROUP TOPIC                                  what an administrator sees, and deletes
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func say(event string, details map[string]any) {
	details["event"] = event
	line, err := json.Marshal(details)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func member(bootstrap, group, topic, strategy string, sessionMS int, instance, speed string) {
	var mutex sync.Mutex
	owned := map[int32]bool{}
	change := func(event string, present bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			mutex.Lock()
			defer mutex.Unlock()
			for _, partition := range changed[topic] {
				if present {
					owned[partition] = true
				} else {
					delete(owned, partition)
				}
			}
			all := []int32{}
			for partition := range owned {
				all = append(all, partition)
			}
			sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
			say(event, map[string]any{"partitions": all})
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(time.Duration(sessionMS) * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.MetadataMaxAge(2 * time.Second),
		kgo.MetadataMinAge(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(change("assigned", true)),
		kgo.OnPartitionsRevoked(change("revoked", false)),
		kgo.OnPartitionsLost(change("lost", false)),
	}
	if instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	if strategy == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())) // it names "uniform"
	} else {
		options = append(options, kgo.Balancers(balancers[strategy]))
	}
	most, perSecond := -1, 0
	if speed != "" {
		most, perSecond = 50, number(speed)
	}
	client, err := kgo.NewClient(options...)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, most)
		fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
			if count := len(fetched.Records); count > 0 {
				from, to := fetched.Records[0].Offset, fetched.Records[count-1].Offset+1
				say("records", map[string]any{"partition": fetched.Partition, "from": from, "to": to})
			}
		})
		if perSecond > 0 {
			time.Sleep(time.Second * time.Duration(fetches.NumRecords()) / time.Duration(perSecond)) // its work
		}
		_ = client.CommitUncommittedOffsets(context.Background()) // what fails is read again by the next owner
	}
	client.Close()
	say("closed", map[string]any{})
}

func produce(bootstrap, topic string, first, last int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	check(err)
	records := []*kgo.Record{}
	for each := first; each < last; each++ {
		text := []byte(strconv.Itoa(each))
		records = append(records, &kgo.Record{Topic: topic, Key: text, Value: text})
	}
	check(client.ProduceSync(context.Background(), records...).FirstErr())
	client.Close()
	say("produced", map[string]any{"count": last - first})
}

func admin(bootstrap, group, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	check(err)
	defer client.Close()
	administrator, ctx := kadm.NewClient(client), context.Background()
	fresh := topic + "-fresh"
	created, err := administrator.CreateTopic(ctx, 3, 1, nil, fresh)
	check(err)
	check(created.Err)
	_, again := administrator.CreateTopic(ctx, 3, 1, nil, fresh)
	topics, err := administrator.ListTopics(ctx, fresh)
	check(err)
	for len(topics[fresh].Partitions) == 0 { // Kafka's brokers learn of a topic a moment after the answer
		time.Sleep(50 * time.Millisecond) // between two looks
		topics, err = administrator.ListTopics(ctx, fresh)
		check(err)
	}
	listed, err := administrator.ListGroups(ctx)
	check(err)
	described, err := administrator.DescribeGroups(ctx, group)
	check(err)
	offsets, err := administrator.FetchOffsets(ctx, group)
	check(err)
	committed := int64(0)
	offsets.Each(func(each kadm.OffsetResponse) { committed += each.At })
	deleted, err := administrator.DeleteGroup(ctx, group)
	check(err)
	check(deleted.Err)
	_, missing := administrator.DeleteGroup(ctx, group)
	_, err = administrator.DeleteTopics(ctx, fresh)
	check(err)
	say("admin", map[string]any{
		"again":      again.Error()[:strings.Index(again.Error(), ":")],
		"partitions": len(topics[fresh].Partitions),
		"listed":     listed.Groups() != nil && contains(listed.Groups(), group),
		"state":      described[group].State,
		"type":       described[group].ProtocolType,
		"committed":  committed,
		"missing":    missing.Error()[:strings.Index(missing.Error(), ":")],
	})
}

func contains(all []string, wanted string) bool {
	for _, each := range all {
		if each == wanted {
			return true
		}
	}
	return false
}

func main() {
	arguments := append(os.Args[2:], "", "")
	switch os.Args[1] {
	case "member":
		member(arguments[0], arguments[1], arguments[2], arguments[3], number(arguments[4]), arguments[5], arguments[6])
	case "produce":
		produce(arguments[0], arguments[1], number(arguments[2]), number(arguments[3]))
	case "admin":
		admin(arguments[0], arguments[1], arguments[2])
	}
}
