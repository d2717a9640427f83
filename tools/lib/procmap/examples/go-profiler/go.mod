module example.org/procmap/examples/go-profiler

go 1.19

require example.org/procmap v0.0.0

replace example.org/procmap => ../../go
