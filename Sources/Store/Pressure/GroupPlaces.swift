import Glibc

/// Where the files of the process's control groups are: those of its own group first, then those of
/// each group above.
struct ControlGroupPaths {
    struct ControlGroup {
        /// The directory.
        let path: String
        /// The group, as the operator knows it.
        let name: String
        let isVersion2: Bool
    }

    /// Those that account for memory.
    private(set) var memory: [ControlGroup] = []
    /// Those of version 2, which tell of stalls, whether they account for memory or not.
    private(set) var unified: [ControlGroup] = []

    /// Reads `/proc/self/cgroup`: lines of `number:controllers:path`, version 2 being number 0
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

    /// The group's directory and those above, up to `root`.
    ///
    /// A container may see its own group as the root while the path is told as the host sees it:
    /// leading parts that are not there are passed over, and at the end the root is what is left.
    private static func ancestors(
        of group: String, below root: String, isVersion2: Bool
    ) -> [ControlGroup] {
        var parts = group.split(separator: "/").filter { $0 != "." }
        // A group outside the visible tree is shown relative to it; what can be seen is the root.
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
