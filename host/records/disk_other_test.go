//go:build !linux

package records_test

// smallDisk is for Linux, where a process can have a disk of its own.
const smallDisk = "OPENSKILL_TEST_SMALL_DISK"

func onSmallDisk(string) int { return 1 }
