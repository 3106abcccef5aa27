module recorder

go 1.24
