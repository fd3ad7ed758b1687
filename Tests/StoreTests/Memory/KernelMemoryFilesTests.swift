import Foundation
import Ground
import Store
import Testing
import Tiers

/// Directories that look like `/proc` and `/sys/fs/cgroup`.
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

/// The files of one group of version 2, which holds 100 MiB, 40 of them page cache.
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

/// The same of version 1.
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

/// What version 1 says for "no limit".
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

@Suite("What the kernel's files say about memory")
struct KernelMemoryFilesTests {
    @Test("version 2 in a container that sees its own group as the root; page cache is not counted")
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

    @Test("version 2, nested: every group above is a bound, and of max and high the lower counts")
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

    @Test("version 1 as a container sees it, whose path is told as the host knows it")
    func containerOfVersion1() throws {
        let files = try KernelFiles(
            together(
                machine,
                ["proc/self/cgroup": "9:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/\n"],
                version1("", limit: 256 << 20, above: 128 << 20)))
        #expect(files.read().bounds == [group("/", 128), machineBound])
    }

    @Test("a group within a container of version 1 is found below what the container sees")
    func withinContainerOfVersion1() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "4:memory:/docker/ab/inner\n"],
                version1("inner/", limit: 64 << 20, above: 64 << 20),
                version1("", limit: 256 << 20, above: 256 << 20)))
        #expect(files.read().bounds == [group("/inner", 64), group("/", 256), machineBound])
    }

    @Test("nested in version 1, the huge number that stands for no limit is none")
    func nestedVersion1() throws {
        let files = try KernelFiles(
            together(
                machine, ["proc/self/cgroup": "4:memory:/a/b\n"],
                version1("a/b/", limit: unlimited, above: unlimited),
                version1("a/", limit: 256 << 20, above: 256 << 20),
                version1("", limit: unlimited, above: unlimited)))
        #expect(files.read().bounds == [group("/a", 256), machineBound])
    }

    @Test("hybrid: version 1 accounts for memory, version 2 tells of stalls")
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

    @Test("a group outside what can be seen counts for the root that can")
    func outside() throws {
        let files = try KernelFiles(
            together(
                ["proc/self/cgroup": "0::/../../other\n"], version2("", max: "\(256 << 20)")))
        #expect(files.read().bounds == [group("/", 256)])
    }

    @Test("without control groups there is the machine, and without it nothing")
    func none() throws {
        let files = try KernelFiles(machine)
        #expect(
            files.read() == SystemMemorySample(bounds: [machineBound], stalledPermille: 34))
        try files.remove("proc/meminfo")
        try files.remove("proc/pressure/memory")
        #expect(files.read() == SystemMemorySample(bounds: []))
    }

    @Test("a limit that is changed and a process that is moved are seen at the next look")
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
        "a file that is missing, empty or garbage makes its group no bound, and nothing fails",
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
        "the list of groups may be anything",
        arguments: [
            "", "::\n", "garbage", "0:\n", "0:::/\n", "4:memory\n", "4:memory:\n",
            "4:memory:/././\n", String(repeating: "0::/a/", count: 1_000), "\u{0}",
        ])
    func garbageOfGroups(text: String) throws {
        let files = try KernelFiles(together(machine, ["proc/self/cgroup": text]))
        #expect(files.read().bounds == [machineBound])
    }

    @Test("numbers that no memory has are bounded", arguments: ["memory.current", "memory.max"])
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
        "stalls that are not told as the kernel tells them are none",
        arguments: [
            "", "full", "full avg10=", "full avg10=12", "full avg10=1.5 avg60", "full avg10=a.00",
            "full avg10=101.00", "some avg10=50.00\n", "full avg60=50.00 avg10=50.00",
        ])
    func garbageOfStalls(text: String) throws {
        let files = try KernelFiles(["proc/pressure/memory": text])
        #expect(files.read().stalledPermille == nil)
    }

    @Test("this machine's own files are understood")
    func thisMachine() throws {
        let reading = KernelMemoryFiles().read()
        #expect(reading.bounds.contains { $0.name == "machine" })
        #expect(reading.bounds.allSatisfy { $0.limitBytes > 0 })
    }
}
