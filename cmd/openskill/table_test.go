package main

import "testing"

func TestTablesAlignByColumnsOfTheTerminal(t *testing.T) {
	t.Parallel()
	x := newTable("NAME", "", "DETAIL")
	x.wrap(3, 10)
	x.row("a", 12, "some long text averyveryverylongword")
	x.row("日本", "ok", "x\ny")
	x.row("e\u0301", 7)
	want := " NAME      DETAIL     \n" +
		" a     12  some long  \n" +
		"           text       \n" +
		"           averyveryv \n" +
		"           erylongwor \n" +
		"           d          \n" +
		" 日本  ok  x          \n" +
		"           y          \n" +
		" e\u0301      7             "
	if got := x.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
