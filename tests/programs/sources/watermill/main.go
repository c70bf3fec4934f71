// A router that reads, retries, and publishes to another topic, with Watermill.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	brokers, name := []string{os.Getenv("BROKER")}, os.Getenv("NAME")
	logger := watermill.NewStdLogger(false, false)
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{Brokers: brokers, Unmarshaler: kafka.DefaultMarshaler{},
		OverwriteSaramaConfig: config, ConsumerGroup: name, InitializeTopicDetails: &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}}, logger)
	check(err)
	check(subscriber.SubscribeInitialize(name))
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Marshaler: kafka.DefaultMarshaler{}}, logger)
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	check(err)
	router.AddMiddleware(middleware.Retry{MaxRetries: 3, InitialInterval: time.Millisecond}.Middleware)
	var read, tries atomic.Int32
	router.AddHandler("copy", name, subscriber, name+"-copy", publisher, func(m *message.Message) ([]*message.Message, error) {
		if tries.Add(1)%10 == 0 {
			return nil, fmt.Errorf("try again")
		}
		return message.Messages{message.NewMessage(watermill.NewUUID(), m.Payload)}, nil
	})
	router.AddNoPublisherHandler("count", name+"-copy", subscriber, func(m *message.Message) error {
		if read.Add(1) == 50 {
			fmt.Println("copied 50")
			os.Exit(0)
		}
		return nil
	})
	go func() {
		<-router.Running()
		for n := 0; n < 50; n++ {
			check(publisher.Publish(name, message.NewMessage(watermill.NewUUID(), []byte("hello"))))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	check(router.Run(ctx))
	log.Fatal("not all came")
}
