package import Tiers

/// Reads what the kernel's files say about memory: control groups of version 2 or 1, or both at
/// once, and the machine.
///
/// Every read begins anew at `/proc/self/cgroup`, so that a process that is moved, and a limit that
/// is changed, are seen. What cannot be read or understood is left out: a bound whose page cache is
/// unknown is no bound, because the page cache fills every control group sooner or later.
///
/// See the kernel's `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
/// `accounting/psi.rst`.
package struct KernelMemoryFiles: Sendable {
    private let proc: String
    private let groups: String

    /// A limit from here on is none: version 1 says "none" with a number.
    static let limitBytesMax = 1 << 60

    /// `proc` and `groups` are where the two file systems are mounted.
    package init(proc: String = "/proc", groups: String = "/sys/fs/cgroup") {
        self.proc = proc
        self.groups = groups
    }

    /// Reads every bound, and how long everything waited; blocks for some ten microseconds a file.
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

    /// The kernel kills at `memory.max`, and brings everything to a crawl at `memory.high`.
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

    /// `hierarchical_memory_limit` is the least of the groups above, seen or not.
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

    private func bound(
        _ place: ControlGroupPaths.ControlGroup, _ limit: Int, _ used: Int, _ cache: Int?
    ) -> SystemMemorySample.Bound? {
        guard let cache else { return nil }
        return SystemMemorySample.Bound(
            name: "control group \(place.name)", limitBytes: limit,
            workingBytes: min(Self.limitBytesMax, max(0, used - cache)))
    }

    /// What the kernel itself thinks can be had without swapping.
    private func boundOfMachine() -> SystemMemorySample.Bound? {
        let table = KernelStatFile("\(proc)/meminfo")
        guard let total = table["MemTotal"], total < Self.limitBytesMax >> 10,
            let available = table["MemAvailable"]
        else { return nil }
        return SystemMemorySample.Bound(
            name: "machine", limitBytes: total << 10, workingBytes: max(0, total - available) << 10)
    }

    // MARK: Numbers

    private func number(_ path: String) -> Int? {
        KernelStatFile.number(KernelStatFile.text(of: path)[...])
    }

    /// The number in a file that holds a limit; nil if it says that there is none.
    private func limit(_ path: String) -> Int? {
        number(path).flatMap(Self.limit)
    }

    private static func limit(_ bytes: Int) -> Int? {
        bytes < limitBytesMax ? bytes : nil
    }

    /// The number after `full avg10=`, which has two places behind the point.
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
