// The virtual clock that drives cores in tests.
