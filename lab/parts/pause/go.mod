module steward.butlerlabs.dev/lab/parts/pause

go 1.26.0
