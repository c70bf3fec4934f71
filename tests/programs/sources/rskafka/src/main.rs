//! A topic, a record, offsets, with rskafka.
use std::collections::BTreeMap;

use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (broker, name) = (std::env::var("BROKER")?, std::env::var("NAME")?);
    let client = ClientBuilder::new(vec![broker]).build().await?;
    client.controller_client()?.create_topic(&name, 2, 1, 5_000).await?;
    let partition = client.partition_client(name.as_str(), 0, UnknownTopicHandling::Retry).await?;
    let record = Record {
        key: Some(b"k".to_vec()),
        value: Some(b"hello".to_vec()),
        headers: BTreeMap::from([("h".to_owned(), b"v".to_vec())]),
        timestamp: chrono::DateTime::from_timestamp(1_700_000_000, 0).ok_or("no such time")?,
    };
    partition.produce(vec![record], Compression::NoCompression).await?;
    let (records, high_watermark) = partition.fetch_records(0, 1..1_000_000, 1_000).await?;
    let value = records[0].record.value.clone().unwrap_or_default();
    assert_eq!(high_watermark, partition.get_offset(OffsetAt::Latest).await?);
    partition.delete_records(1, 5_000).await?;
    assert_eq!(partition.get_offset(OffsetAt::Earliest).await?, 1);
    println!("read {}", String::from_utf8(value)?);
    client.controller_client()?.delete_topic(&name, 5_000).await?;
    Ok(())
}
