import Foundation
import Ground
import Store
import Testing
import Tiers

/// Directories that imitate `/proc` and `/sys/fs/cgroup`.
struct KernelFiles {
    private let root = TemporaryDirectory()

    init(_ files: [String: String]) throws {
        for (path, text) in files { try write(path, text) }
    }

    func write(_ path: String, _ text: String) throws {
        let url = URL(fileURLWithPath: "\(root.path)/\(path)")
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }

    func remove(_ path: String) throws {
        try FileManager.default.removeItem(atPath: "\(root.path)/\(path)")
    }

    func read() -> SystemMemorySample {
        KernelMemoryFiles(proc: "\(root.path)/proc", groups: "\(root.path)/cgroup").read()
    }
}

/// Writes the files of a cgroup v2 that uses 100 MiB, 40 of them page cache.
private func version2(_ path: String, max: String, high: String = "max") -> [String: String] {
    [
        "cgroup/\(path)memory.max": max + "\n", "cgroup/\(path)memory.high": high + "\n",
        "cgroup/\(path)memory.current": "\(100 << 20)\n",
        "cgroup/\(path)memory.stat": """
        anon \(55 << 20)
        file \(45 << 20)
        file_mapped \(5 << 20)
        inactive_anon \(50 << 20)
        active_anon \(5 << 20)
        inactive_file \(30 << 20)
        active_file \(15 << 20)

        """,
    ]
}

/// Writes the files of the same group in cgroup v1.
private func version1(_ path: String, limit: Int, above: Int) -> [String: String] {
    [
        "cgroup/memory/\(path)memory.limit_in_bytes": "\(limit)\n",
        "cgroup/memory/\(path)memory.usage_in_bytes": "\(100 << 20)\n",
        "cgroup/memory/\(path)memory.stat": """
        cache \(1 << 20)
        inactive_file 1
        active_file 1
        hierarchical_memory_limit \(above)
        total_mapped_file \(5 << 20)
        total_inactive_file \(30 << 20)
        total_active_file \(15 << 20)

        """,
    ]
}

/// The value for "no limit" in cgroup v1.
private let unlimited = 9_223_372_036_854_771_712

private let machine = [
    "proc/meminfo": """
    MemTotal:        8388608 kB
    MemFree:          100000 kB
    MemAvailable:    6291456 kB

    """,
    "proc/pressure/memory": """
    some avg10=12.00 avg60=1.00 avg300=0.00 total=1
    full avg10=3.45 avg60=0.00 avg300=0.00 total=1

    """,
]

private let machineBound = SystemMemorySample.Bound(
    name: "machine", limitBytes: 8 << 30, workingBytes: 2 << 30)

private func group(_ name: String, _ limitMiB: Int) -> SystemMemorySample.Bound {
    .init(name: "control group \(name)", limitBytes: limitMiB << 20, workingBytes: 60 << 20)
}

private func together(_ parts: [String: String]...) -> [String: String] {
    parts.reduce(into: [:]) { $0.merge($1) { $1 } }
}

@Suite("Memory limits and usage from the kernel's files")
struct KernelMemoryFilesTests {
    @Test("cgroup v2 in a container whose own group is the root; page cache does not count")
    func containerOfVersion2() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "0::/\n"],
                version2("", max: "\(256 << 20)"),
                ["cgroup/memory.pressure": "some avg10=1.00\nfull avg10=17.05 avg60=0.00\n"]))
        #expect(
            files.read()
                == SystemMemorySample(
                    bounds: [group("/", 256), machineBound], stalledPermille: 170))
    }

    @Test("Nested cgroup v2: each ancestor is a bound, with the lower of max and high")
    func nestedVersion2() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "0::/a.slice/b/c\n"],
                version2("a.slice/", max: "\(512 << 20)"),
                version2("a.slice/b/", max: "max", high: "\(300 << 20)"),
                version2("a.slice/b/c/", max: "max")))
        #expect(
            files.read()
                == SystemMemorySample(
                    bounds: [group("/a.slice/b", 300), group("/a.slice", 512), machineBound],
                    stalledPermille: 34))
    }

    @Test("cgroup v1 in a container, with the path as the host knows it")
    func containerOfVersion1() throws {
        let files = try KernelFiles(
            together(
                machine,
                ["proc/self/cgroup": "9:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/\n"],
                version1("", limit: 256 << 20, above: 128 << 20)))
        #expect(files.read().bounds == [group("/", 128), machineBound])
    }

    @Test("A group inside a cgroup v1 container is found below the container's root")
    func withinContainerOfVersion1() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "4:memory:/docker/ab/inner\n"],
                version1("inner/", limit: 64 << 20, above: 64 << 20),
                version1("", limit: 256 << 20, above: 256 << 20)))
        #expect(files.read().bounds == [group("/inner", 64), group("/", 256), machineBound])
    }

    @Test("Nested cgroup v1: the huge number for no limit is no bound")
    func nestedVersion1() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "4:memory:/a/b\n"],
                version1("a/b/", limit: unlimited, above: unlimited),
                version1("a/", limit: 256 << 20, above: 256 << 20),
                version1("", limit: unlimited, above: unlimited)))
        #expect(files.read().bounds == [group("/a", 256), machineBound])
    }

    @Test("Hybrid: memory from cgroup v1, stalls from v2")
    func hybrid() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "4:memory:/a\n0::/a\n"],
                version1("a/", limit: 256 << 20, above: 256 << 20),
                ["cgroup/unified/a/memory.pressure": "full avg10=100.00 avg60=0.00\n"]))
        #expect(
            files.read()
                == SystemMemorySample(
                    bounds: [group("/a", 256), machineBound], stalledPermille: 1_000))
    }

    @Test("A group outside the visible tree counts as the visible root")
    func outside() throws {
        let files = try KernelFiles(
            together(
                ["proc/self/cgroup": "0::/../../other\n"], version2("", max: "\(256 << 20)")))
        #expect(files.read().bounds == [group("/", 256)])
    }

    @Test("Without cgroups the machine is the bound, and without it there is none")
    func none() throws {
        let files = try KernelFiles(machine)
        #expect(
            files.read() == SystemMemorySample(bounds: [machineBound], stalledPermille: 34))
        try files.remove("proc/meminfo")
        try files.remove("proc/pressure/memory")
        #expect(files.read() == SystemMemorySample(bounds: []))
    }

    @Test("A changed limit and a moved process take effect at the next sample")
    func changes() throws {
        let files = try KernelFiles(
            together(
                ["proc/self/cgroup": "0::/a\n"], version2("a/", max: "max"),
                version2("b/", max: "\(128 << 20)")))
        #expect(files.read().bounds == [])
        try files.write("cgroup/a/memory.max", "\(64 << 20)\n")
        #expect(files.read().bounds == [group("/a", 64)])
        try files.write("proc/self/cgroup", "0::/b\n")
        #expect(files.read().bounds == [group("/b", 128)])
    }

    @Test(
        "A missing, empty or malformed file makes its group no bound",
        arguments: ["memory.max", "memory.current", "memory.stat"],
        [nil, "", "\n", "garbage", "-5\n", "12 34\n", "0x10\n", "\u{0}\u{1}\u{2}", "1 MiB"])
    func garbage(name: String, text: String?) throws {
        let files = try KernelFiles(
            together(machine, ["proc/self/cgroup": "0::/\n"], version2("", max: "\(1 << 28)")))
        if let text {
            try files.write("cgroup/\(name)", text)
        } else {
            try files.remove("cgroup/\(name)")
        }
        #expect(files.read().bounds == [machineBound])
    }

    @Test(
        "The list of groups may contain anything",
        arguments: [
            "", "::\n", "garbage", "0:\n", "0:::/\n", "4:memory\n", "4:memory:\n",
            "4:memory:/././\n", String(repeating: "0::/a/", count: 1_000), "\u{0}",
        ])
    func garbageOfGroups(text: String) throws {
        let files = try KernelFiles(together(machine, ["proc/self/cgroup": text]))
        #expect(files.read().bounds == [machineBound])
    }

    @Test("Impossible numbers are clamped", arguments: ["memory.current", "memory.max"])
    func hugeNumbers(name: String) throws {
        let huge = String(repeating: "9", count: 40)
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "0::/\n"], version2("", max: "\(1 << 28)"),
                ["cgroup/\(name)": huge]))
        var rule = MemoryPressurePolicy()
        let use = MemoryPressurePolicy.Usage(
            configuredBytes: 1 << 30, usedBytes: 1 << 30, fetchBytes: 0)
        #expect(
            rule.evaluate(now: .zero, usage: use, sample: files.read()).limitBytes
                == (name == "memory.current" ? MemoryPressurePolicy.floorBytes : 1 << 30))
    }

    @Test(
        "Malformed stall information counts as none",
        arguments: [
            "", "full", "full avg10=", "full avg10=12", "full avg10=1.5 avg60", "full avg10=a.00",
            "full avg10=101.00", "some avg10=50.00\n", "full avg60=50.00 avg10=50.00",
        ])
    func garbageOfStalls(text: String) throws {
        let files = try KernelFiles(["proc/pressure/memory": text])
        #expect(files.read().stalledPermille == nil)
    }

    @Test("The files of the machine that runs the tests can be read")
    func thisMachine() throws {
        let reading = KernelMemoryFiles().read()
        #expect(reading.bounds.contains { $0.name == "machine" })
        #expect(reading.bounds.allSatisfy { $0.limitBytes > 0 })
    }
}
