// Package client calls an openSkill host over HTTP: its skills, its agent, and the
// records of both. It needs the standard library alone.
//
//	c, err := client.New("http://127.0.0.1:8000", nil)
//	r, err := c.Invoke(ctx, "calculator", map[string]any{"numbers": []int{3, 5}, "ops": []string{"mean"}})
//	answer, err := c.NewAgent().Run(ctx, "What is the mean of 3 and 5?")
//
// What the host refuses, and what failed there, is an [*Error] with one of the published
// codes. Answers are what the host, skills and models said: text for people in them is as
// they wrote it, and must be cleaned before it is shown on a terminal or a page.
//
// What a host refused before anything began, with 429 or a 503 that says so, is sent again a
// few times; see [Options]. Requests end with their context, and have no other deadline. Answers are read up to a
// size, streams are read one event at a time, and no redirect is followed: it would take
// the key along.
package client
