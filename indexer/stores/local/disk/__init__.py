"""The lock of writers, and the steps at which a test may kill one."""
