// Package admissiontest makes archives, honest and hostile ones, for those who test
// what admits them. Everything is made by code, byte by byte where packers would
// refuse to help, and the same bytes come out every time.
package admissiontest
