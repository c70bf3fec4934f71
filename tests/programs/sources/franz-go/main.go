// A group that copies a topic in transactions, and admin calls, with franz-go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	broker, name := kgo.SeedBrokers(os.Getenv("BROKER")), os.Getenv("NAME")
	client, err := kgo.NewClient(broker, kgo.DefaultProduceTopic(name))
	check(err)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopics(ctx, 2, 1, nil, name, name+"-copy")
	check(err)
	for number := range 100 {
		check(client.ProduceSync(ctx, kgo.StringRecord(strconv.Itoa(number))).FirstErr())
	}

	session, err := kgo.NewGroupTransactSession(
		broker,
		kgo.TransactionalID(name),
		kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	check(err)
	for copied := 0; copied < 100; {
		records := session.PollFetches(ctx).Records()
		check(ctx.Err())
		check(session.Begin())
		for _, record := range records {
			session.Produce(ctx, &kgo.Record{Topic: name + "-copy", Value: record.Value}, func(_ *kgo.Record, err error) { check(err) })
		}
		committed, err := session.End(ctx, kgo.TryCommit)
		check(err)
		if committed {
			copied += len(records)
		}
	}
	session.Close()

	reader, err := kgo.NewClient(
		broker,
		kgo.ConsumeTopics(name+"-copy"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	check(err)
	seen := map[string]bool{}
	for len(seen) < 100 {
		for _, record := range reader.PollFetches(ctx).Records() {
			seen[string(record.Value)] = true
		}
		check(ctx.Err())
	}
	reader.Close()
	fmt.Println("copied", len(seen))

	lags, err := admin.Lag(ctx, name)
	check(err)
	check(lags.Error())
	transactions, err := admin.DescribeTransactions(ctx, name)
	check(err)
	_, err = admin.DescribeBrokerConfigs(ctx, 1)
	check(err)
	_, err = admin.DescribeAllLogDirs(ctx, nil)
	check(err)
	fmt.Println("described", lags[name].State, transactions[name].State)
	_, err = admin.DeleteTopics(ctx, name, name+"-copy")
	check(err)
	client.Close()
}
