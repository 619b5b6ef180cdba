package skillbench

import "testing"

// BenchmarkPythonSkill is a warm call of the small Python skill, for profiles:
//
//	go test ./plugins/skillbench -run '^$' -bench PythonSkill -cpuprofile cpu.prof
func BenchmarkPythonSkill(b *testing.B) {
	for _, c := range []struct{ name, input string }{{"Echo", echo}, {"Uses", text}} {
		b.Run(c.name, func(b *testing.B) {
			skills := quick(b)
			call := skills.script("stdlib.py", c.input)
			for b.Loop() {
				if _, _, err := once(b.Context(), skills.python, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
