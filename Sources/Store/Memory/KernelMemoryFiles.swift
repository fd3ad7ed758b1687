import CLinux
import Glibc
package import Tiers

/// Reads the kernel's files about memory: control groups of version 2, version 1 or both, and the
/// machine.
///
/// Every read starts at `/proc/self/cgroup`, so it sees a process that was moved and a limit that
/// was changed. Unreadable or invalid values are omitted. A bound whose page cache is unknown is
/// ignored, because the page cache eventually fills every control group.
///
/// See the kernel's `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
/// `accounting/psi.rst`.
package struct KernelMemoryFiles: Sendable {
    private let proc: String
    private let groups: String

    /// A limit of at least this is none: version 1 encodes "none" as a large number.
    static let limitBytesMax = 1 << 60

    /// Creates a reader; `proc` and `groups` are the mount points of procfs and of the control
    /// groups.
    package init(proc: String = "/proc", groups: String = "/sys/fs/cgroup") {
        self.proc = proc
        self.groups = groups
    }

    /// Reads all bounds and the memory stall time; blocks for about ten microseconds per file.
    package func read() -> SystemMemorySample {
        let places = ControlGroupPaths(proc: proc, groups: groups)
        var bounds = places.memory.compactMap { place in
            place.isVersion2 ? boundOfVersion2(place) : boundOfVersion1(place)
        }
        if let machine = boundOfMachine() { bounds.append(machine) }
        let stalled =
            places.unified.first.flatMap { stalledPermille("\($0.path)/memory.pressure") }
            ?? stalledPermille("\(proc)/pressure/memory")
        return SystemMemorySample(bounds: bounds, stalledPermille: stalled)
    }

    // MARK: Bounds

    /// Reads a version 2 group: the kernel kills at `memory.max` and throttles at `memory.high`.
    private func boundOfVersion2(_ place: ControlGroupPaths.ControlGroup) -> SystemMemorySample
        .Bound?
    {
        let limits = ["memory.max", "memory.high"].compactMap { limit("\(place.path)/\($0)") }
        guard let limit = limits.min(), let used = number("\(place.path)/memory.current") else {
            return nil
        }
        let cache = KernelStatFile("\(place.path)/memory.stat").cacheBytes(
            ["inactive_file", "active_file"], mapped: "file_mapped")
        return bound(place, limit, used, cache)
    }

    /// Reads a version 1 group; `hierarchical_memory_limit` is the least limit of the groups above,
    /// visible or not.
    private func boundOfVersion1(_ place: ControlGroupPaths.ControlGroup) -> SystemMemorySample
        .Bound?
    {
        let table = KernelStatFile("\(place.path)/memory.stat")
        let limits = [
            limit("\(place.path)/memory.limit_in_bytes"),
            table["hierarchical_memory_limit"].flatMap(Self.limit),
        ]
        guard let limit = limits.compactMap(\.self).min(),
            let used = number("\(place.path)/memory.usage_in_bytes")
        else { return nil }
        let cache = table.cacheBytes(
            ["total_inactive_file", "total_active_file"], mapped: "total_mapped_file")
        return bound(place, limit, used, cache)
    }

    /// Creates the bound of a control group, whose page cache does not count as used; `nil` if that
    /// is unknown.
    private func bound(
        _ place: ControlGroupPaths.ControlGroup, _ limit: Int, _ used: Int, _ cache: Int?
    ) -> SystemMemorySample.Bound? {
        guard let cache else { return nil }
        return SystemMemorySample.Bound(
            name: "control group \(place.name)", limitBytes: limit,
            workingBytes: min(Self.limitBytesMax, max(0, used - cache)))
    }

    /// Reads the machine's bound, from the kernel's estimate of memory available without swapping.
    private func boundOfMachine() -> SystemMemorySample.Bound? {
        let table = KernelStatFile("\(proc)/meminfo")
        guard let total = table["MemTotal"], total < Self.limitBytesMax >> 10,
            let available = table["MemAvailable"]
        else { return nil }
        return SystemMemorySample.Bound(
            name: "machine", limitBytes: total << 10, workingBytes: max(0, total - available) << 10)
    }

    // MARK: Parsing

    /// Returns the number in a file that contains nothing else; `nil` otherwise.
    private func number(_ path: String) -> Int? {
        KernelStatFile.number(KernelStatFile.text(of: path)[...])
    }

    /// Returns the number in a file that contains a limit; `nil` if it contains none.
    private func limit(_ path: String) -> Int? {
        number(path).flatMap(Self.limit)
    }

    private static func limit(_ bytes: Int) -> Int? {
        bytes < limitBytesMax ? bytes : nil
    }

    /// Returns the number after `full avg10=`, which has two decimal places, in permille.
    private func stalledPermille(_ path: String) -> Int? {
        for line in KernelStatFile.text(of: path).split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard words.count > 1, words[0].elementsEqual("full".utf8),
                words[1].starts(with: "avg10=".utf8)
            else { continue }
            let parts = words[1].dropFirst(6).split(separator: UInt8(ascii: "."))
            guard parts.count == 2, let whole = KernelStatFile.number(parts[0]), whole <= 100,
                parts[1].count == 2, let places = KernelStatFile.number(parts[1])
            else { return nil }
            return whole * 10 + places / 10
        }
        return nil
    }
}

/// A kernel file with one name and number per line, such as `memory.stat` and `meminfo`.
struct KernelStatFile {
    private let lines: [[UInt8].SubSequence]

    /// Maximum bytes read; more than any such file has.
    private static let bytesMax = 32 << 10

    /// Reads the file; empty if there is none.
    init(_ path: String) {
        lines = Self.text(of: path).split(separator: UInt8(ascii: "\n"))
    }

    /// The number after `name`, which a colon may follow; `nil` if it is missing or invalid.
    subscript(name: String) -> Int? {
        for line in lines where line.starts(with: name.utf8) {
            let rest = line.dropFirst(name.utf8.count)
            guard let next = rest.first, next == UInt8(ascii: " ") || next == UInt8(ascii: ":")
            else { continue }
            let words = rest.drop { $0 == UInt8(ascii: ":") }.split(separator: UInt8(ascii: " "))
            return words.first.flatMap(Self.number)
        }
        return nil
    }

    /// Returns the page cache that the kernel can reclaim: the sum of the `lists` without mapped
    /// pages, such as the program itself; `nil` if a value is missing.
    func cacheBytes(_ lists: [String], mapped: String) -> Int? {
        var sum = 0
        for list in lists {
            guard let bytes = self[list] else { return nil }
            sum &+= bytes
        }
        return max(0, sum - (self[mapped] ?? 0))
    }

    /// Parses the number at the start of a text, if only white space follows it; at most `Int.max`.
    static func number(_ text: some Sequence<UInt8>) -> Int? {
        var value: Int?
        var isOver = false
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !isOver:
                let (tens, overflow) = (value ?? 0).multipliedReportingOverflow(by: 10)
                let (sum, overflowToo) = tens.addingReportingOverflow(
                    Int(byte - UInt8(ascii: "0")))
                value = overflow || overflowToo ? .max : sum
            case UInt8(ascii: "\n"), UInt8(ascii: " "): isOver = true
            default: return nil
            }
        }
        return value
    }

    /// Returns the bytes of a file, at most ``bytesMax``; none if it cannot be read.
    static func text(of path: String) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        return unsafe [UInt8](unsafeUninitializedCapacity: bytesMax) { room, done in
            guard let base = room.baseAddress else { return }
            while done < room.count {
                let count = unsafe Glibc.read(descriptor, base + done, room.count - done)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return }
                done += count
            }
        }
    }
}

/// The directories of the process's control groups: its own group first, then each group above.
struct ControlGroupPaths {
    /// A control group of the process.
    struct ControlGroup {
        /// The path of the directory.
        let path: String
        /// The name of the group as the operator knows it.
        let name: String
        let isVersion2: Bool
    }

    /// The groups that account for memory.
    private(set) var memory: [ControlGroup] = []
    /// The version 2 groups, which report stalls, whether or not they account for memory.
    private(set) var unified: [ControlGroup] = []

    /// Reads `/proc/self/cgroup`: lines of `number:controllers:path`, where version 2 is number 0
    /// without controllers (cgroups(7)).
    init(proc: String, groups: String) {
        for line in KernelStatFile.text(of: "\(proc)/self/cgroup").split(
            separator: UInt8(ascii: "\n"))
        {
            let parts = line.split(
                separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let controllers = parts[1].split(separator: UInt8(ascii: ","))
            let group = String(decoding: parts[2], as: UTF8.self)
            if controllers.contains(where: { $0.elementsEqual("memory".utf8) }) {
                memory += Self.ancestors(of: group, below: "\(groups)/memory", isVersion2: false)
            } else if parts[0].elementsEqual("0".utf8), controllers.isEmpty {
                let hybrid = "\(groups)/unified"
                let root = Self.exists(hybrid) ? hybrid : groups
                unified += Self.ancestors(of: group, below: root, isVersion2: true)
            }
        }
        if memory.isEmpty { memory = unified }
    }

    /// Returns the group's directory and those above, up to `root`.
    ///
    /// A container may see its own group as the root while the path is that of the host: missing
    /// leading parts are skipped, which leaves the root in the end.
    private static func ancestors(
        of group: String, below root: String, isVersion2: Bool
    ) -> [ControlGroup] {
        var parts = group.split(separator: "/").filter { $0 != "." }
        // A group outside the visible tree is shown relative to it; only the root is visible.
        if parts.contains("..") { parts = [] }
        while !parts.isEmpty, !exists("\(root)/\(parts.joined(separator: "/"))") {
            parts.removeFirst()
        }
        var places: [ControlGroup] = []
        while true {
            let path = parts.isEmpty ? root : "\(root)/\(parts.joined(separator: "/"))"
            places.append(
                ControlGroup(
                    path: path, name: "/" + parts.joined(separator: "/"), isVersion2: isVersion2))
            guard parts.popLast() != nil else { return places }
        }
    }

    private static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }
}

/// The C library's allocator, from which all memory of the process comes.
package enum Allocator {
    /// Limits the number of arenas to a quarter of the cores; call it before a second thread
    /// exists, since each thread may already have its own.
    ///
    /// Freed memory is reused only in its own arena, and an image is seldom freed by the loop that
    /// stored it. Two loops and six disk threads with a churning tier of 128 MiB use 205 MB with
    /// one arena each, 171 MB with two and 144 MB with one, at the same speed: a hit allocates
    /// nothing.
    package static func limitArenas(forCores cores: Int) {
        _ = mallopt(M_ARENA_MAX, CInt(max(1, cores / 4)))
    }

    /// Returns whole free pages to the kernel (malloc_trim(3)).
    ///
    /// Threads that allocate meanwhile may block, so do not call it for every eviction.
    package static func releaseFreeMemory() {
        _ = malloc_trim(0)
    }
}
