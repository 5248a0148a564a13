//! Real clusters on one machine, for the demo, the tests and the benchmarks.
