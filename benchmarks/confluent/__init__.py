"""How fast confluent-kafka's consumer reads when its group is assigned by ours, beside the stock one."""
