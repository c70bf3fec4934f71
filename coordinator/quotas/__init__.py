"""Quotas of users, client ids and addresses (KIP-546), which are kept and described, and slow nothing down."""
