// A topic, records, and a group whose offsets are read back, with kafka-go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
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
	connection, err := kafka.DialContext(ctx, "tcp", broker)
	check(err)
	check(connection.CreateTopics(kafka.TopicConfig{Topic: name, NumPartitions: 1, ReplicationFactor: 1}))
	writer := &kafka.Writer{Addr: kafka.TCP(broker), Topic: name, RequiredAcks: kafka.RequireAll, Compression: kafka.Lz4}
	var messages []kafka.Message
	for number := range 100 {
		messages = append(messages, kafka.Message{Value: []byte(strconv.Itoa(number))})
	}
	check(writer.WriteMessages(ctx, messages...))
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{broker}, GroupID: name, Topic: name, StartOffset: kafka.FirstOffset})
	for range 100 {
		message, err := reader.FetchMessage(ctx)
		check(err)
		check(reader.CommitMessages(ctx, message))
	}
	fmt.Println("read", 100)
	check(reader.Close())
	client := &kafka.Client{Addr: kafka.TCP(broker)}
	offsets, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: name, Topics: map[string][]int{name: {0}}})
	check(err)
	fmt.Println("committed", offsets.Topics[name][0].CommittedOffset)
	_, err = client.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionalID: name, TransactionTimeoutMs: 10000})
	check(err)
}
