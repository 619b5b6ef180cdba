module openskill/sdk/go

go 1.24
