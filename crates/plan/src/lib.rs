//! What a tenant should look like: pure, no client, no clock.
