// A group that copies a topic in transactions, and admin calls, with sarama.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

var name = os.Getenv("NAME")

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type copier struct {
	producer sarama.SyncProducer
	left     int
	done     context.CancelFunc
}

func (*copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *copier) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for record := range claim.Messages() {
		check(c.producer.BeginTxn())
		_, _, err := c.producer.SendMessage(&sarama.ProducerMessage{Topic: name + "-copy", Value: sarama.ByteEncoder(record.Value)})
		check(err)
		check(c.producer.AddMessageToTxn(record, name, nil))
		check(c.producer.CommitTxn())
		if c.left--; c.left == 0 {
			c.done()
		}
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	brokers := []string{os.Getenv("BROKER")}
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	admin, err := sarama.NewClusterAdmin(brokers, config)
	check(err)
	for _, topic := range []string{name, name + "-copy"} {
		check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	}
	producer, err := sarama.NewSyncProducer(brokers, config)
	check(err)
	for number := range 100 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: name, Value: sarama.StringEncoder(strconv.Itoa(number))})
		check(err)
	}

	transactional := *config
	transactional.Producer.Idempotent = true
	transactional.Producer.RequiredAcks = sarama.WaitForAll
	transactional.Producer.Transaction.ID = name
	transactional.Net.MaxOpenRequests = 1
	writer, err := sarama.NewSyncProducer(brokers, &transactional)
	check(err)
	group, err := sarama.NewConsumerGroup(brokers, name, config)
	check(err)
	copying, done := context.WithCancel(ctx)
	for copying.Err() == nil {
		check(group.Consume(copying, []string{name}, &copier{writer, 100, done}))
	}
	check(ctx.Err())
	check(group.Close())
	check(writer.Close())

	consumer, err := sarama.NewConsumer(brokers, config)
	check(err)
	copies, err := consumer.ConsumePartition(name+"-copy", 0, sarama.OffsetOldest)
	check(err)
	for range 100 {
		select {
		case <-copies.Messages():
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
	fmt.Println("copied", 100)

	offsets, err := admin.ListConsumerGroupOffsets(name, map[string][]int32{name: {0}})
	check(err)
	groups, err := admin.DescribeConsumerGroups([]string{name})
	check(err)
	_, err = admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: name})
	check(err)
	_, err = admin.DescribeLogDirs([]int32{1})
	check(err)
	fmt.Println("described", groups[0].State, offsets.GetBlock(name, 0).Offset)
	check(admin.DeleteTopic(name))
}
