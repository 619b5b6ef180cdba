package catalogue

import "testing"

// BenchmarkGet is what each call of an upload pays for the look at its files.
func BenchmarkGet(b *testing.B) {
	s := open(b, b.TempDir(), nil)
	mustPublish(b, s, "acme", "up", "1.0.0", "one")
	if _, err := s.decide(to(Enable, "acme", "up", "")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get("acme", "up", ""); err != nil {
			b.Fatal(err)
		}
	}
}
