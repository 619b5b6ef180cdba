package api

// ReadPlaces is how many lists are made at once.
func ReadPlaces() int { return 2 }

// OpenBodies is how many bytes are held of bodies of callers that are not known.
func OpenBodies(s *Server) int {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	return s.open.used
}

// Unread is how many bytes are held of answers that are not read yet.
func Unread(s *Server) (n int) {
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	for _, held := range s.answers.held {
		n += held
	}
	return n
}
