// A group of KIP-848 that copies a topic in transactions, with confluent-kafka-go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	broker, name := os.Getenv("BROKER"), os.Getenv("NAME")
	target := name + "-copy"
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": broker, "transactional.id": name})
	check(err)
	admin, err := kafka.NewAdminClientFromProducer(producer)
	check(err)
	_, err = admin.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: name, NumPartitions: 1}, {Topic: target, NumPartitions: 1}})
	check(err)
	check(producer.InitTransactions(ctx))
	go func() {
		for range producer.Events() {
		}
	}()
	send := func(topic string, value []byte) {
		check(producer.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: value}, nil))
	}
	check(producer.BeginTransaction())
	for number := range 100 {
		send(name, []byte(strconv.Itoa(number)))
	}
	check(producer.CommitTransaction(ctx))

	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": broker, "group.id": name, "group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": false,
	})
	check(err)
	check(consumer.Subscribe(name, nil))
	check(producer.BeginTransaction())
	for range 100 {
		message, err := consumer.ReadMessage(30 * time.Second)
		check(err)
		send(target, message.Value)
	}
	assigned, err := consumer.Assignment()
	check(err)
	positions, err := consumer.Position(assigned)
	check(err)
	metadata, err := consumer.GetConsumerGroupMetadata()
	check(err)
	check(producer.SendOffsetsToTransaction(ctx, positions, metadata))
	check(producer.CommitTransaction(ctx))
	check(consumer.Close())
	_, high, err := producer.QueryWatermarkOffsets(target, 0, 10000)
	check(err)
	fmt.Println("copied", high-1)
}
