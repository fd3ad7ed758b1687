import Glibc
package import Ground
package import Tiers

/// The directory below `--cache-dir` that only this node writes to.
///
/// A node uses the first of `node-0`, `node-1`, … that it can lock. So nodes that share a volume
/// have one directory each, and find it again after a restart. The lock is held for the lifetime of
/// the object.
package final class NodeDirectory: Sendable {
    /// The path of the directory.
    package let path: String
    /// The identity of the node with the epoch of this start, which is on the disk.
    package let identity: NodeIdentity
    /// The newest wall time known before this start, in milliseconds since 1970.
    package let formerWall: Int64
    /// Why the stored identity could not be read; `nil` if it could, or if the directory is new.
    package let identityDamage: DiskFormatError?
    private let lock: DiskFile

    /// Maximum number of nodes that share one volume.
    package static let nodesMax = 1024

    /// The reason why no directory could be claimed.
    package enum ClaimError: Error, Hashable, CustomStringConvertible {
        /// A system call failed.
        case failure(DiskFile.Failure)
        /// Other nodes hold all ``nodesMax`` directories.
        case allTaken(String)

        /// The reason in words.
        package var description: String {
            switch self {
            case .failure(let failure): "\(failure)"
            case .allTaken(let path): "\(NodeDirectory.nodesMax) nodes already use \(path)"
            }
        }
    }

    /// Claims a directory below `root`, which is created if missing, and starts a new boot epoch.
    ///
    /// - Parameters:
    ///   - root: the directory that nodes share.
    ///   - newID: makes the id for a directory without an identity.
    ///   - formerEpoch: the new boot epoch is greater than this one.
    ///   - wall: the wall time in milliseconds since 1970.
    ///   - plan: receives the size of the existing segments, or `nil`, and returns the size to use.
    /// - Throws: ``ClaimError`` if a system call fails, or if other nodes hold all directories.
    package init(
        below root: String, newID: (_ path: String) -> NodeID, formerEpoch: UInt64 = 0, wall: Int64,
        plan: (UInt64?) -> UInt64
    ) throws(ClaimError) {
        let claimed: (path: String, lock: DiskFile)?
        do throws(DiskFile.Failure) {
            try Self.make(root)
            claimed = try Self.claim(below: root)
        } catch { throw .failure(error) }
        guard let claimed else { throw .allTaken(root) }
        path = claimed.path
        lock = claimed.lock
        do throws(DiskFile.Failure) {
            let (last, damage) = try Self.lastIdentity(in: claimed.path)
            identityDamage = damage
            formerWall = last?.newestWall ?? wall
            let hasSegments = try Self.names(in: claimed.path).contains {
                SegmentFiles.number($0) != nil
            }
            let identity = NodeIdentity(
                nodeID: last?.nodeID ?? newID(claimed.path),
                bootEpoch: max(last?.bootEpoch ?? 0, formerEpoch) + 1,
                segmentBytes: plan(hasSegments ? last?.segmentBytes : nil),
                newestWall: max(last?.newestWall ?? wall, wall))
            try Self.replace(identity, in: claimed.path)
            self.identity = identity
        } catch { throw .failure(error) }
    }

    /// Creates the directory and its missing parents.
    private static func make(_ path: String) throws(DiskFile.Failure) {
        if let end = path.lastIndex(of: "/"), end > path.startIndex,
            unsafe access(String(path[..<end]), F_OK) != 0
        {
            try make(String(path[..<end]))
        }
        guard unsafe mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw DiskFile.Failure("make directory", path)
    }

    /// Creates and locks the first directory that no other node has locked; `nil` if all are taken.
    private static func claim(
        below root: String
    ) throws(DiskFile.Failure) -> (String, DiskFile)? {
        for number in 0..<nodesMax {
            let path = "\(root)/node-\(number)"
            try make(path)
            let file = try DiskFile("\(path)/lock", creates: true)
            if try file.lock() { return (path, file) }
        }
        return nil
    }

    /// Returns the identity of the previous start, or why it cannot be decoded; neither for a new
    /// directory.
    private static func lastIdentity(
        in path: String
    ) throws(DiskFile.Failure) -> (NodeIdentity?, DiskFormatError?) {
        guard unsafe access("\(path)/identity", F_OK) == 0 else { return (nil, nil) }
        let bytes = try DiskFile("\(path)/identity", creates: false)
            .read(NodeIdentity.bytesCount, at: 0)
        do throws(DiskFormatError) {
            return (try NodeIdentity(bytes.span), nil)
        } catch {
            return (nil, error)
        }
    }

    /// Replaces the identity file atomically: after a power failure, the old or the new one exists.
    private static func replace(
        _ identity: NodeIdentity, in path: String
    ) throws(DiskFile.Failure) {
        let new = "\(path)/identity.new"
        let file = try DiskFile(new, creates: true)
        try file.write(identity.bytes.span, at: 0)
        try file.sync()
        guard unsafe Glibc.rename(new, "\(path)/identity") == 0 else {
            throw DiskFile.Failure("rename", new)
        }
        try syncDirectory(path)
    }

    /// Returns once the names of the directory's files are on the disk.
    static func syncDirectory(_ path: String) throws(DiskFile.Failure) {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw DiskFile.Failure("open", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw DiskFile.Failure("sync", path) }
    }

    /// Returns the bytes of the blocks of the directory and its files.
    package func allocatedBytes() -> UInt64 {
        let files = ((try? names()) ?? []) + ["."]
        return files.reduce(0) { $0 + (status("\(path)/\($1)")?.allocated ?? 0) }
    }

    /// Returns the names of all files, without `.` and `..`.
    package func names() throws(DiskFile.Failure) -> [String] { try Self.names(in: path) }

    private static func names(in path: String) throws(DiskFile.Failure) -> [String] {
        guard let folder = unsafe opendir(path) else {
            throw DiskFile.Failure("read directory", path)
        }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Removes a file of the directory.
    package func remove(_ name: String) throws(DiskFile.Failure) {
        guard unsafe unlink("\(path)/\(name)") == 0 else {
            throw DiskFile.Failure("remove", "\(path)/\(name)")
        }
    }

    /// Renames a file of the directory, replacing one of the new name.
    package func rename(_ name: String, to new: String) throws(DiskFile.Failure) {
        guard unsafe Glibc.rename("\(path)/\(name)", "\(path)/\(new)") == 0 else {
            throw DiskFile.Failure("rename", "\(path)/\(name)")
        }
    }

    /// Throws if the locked file is no longer the one at its path, or if the directory is not
    /// writable.
    package func check() throws(DiskFile.Failure) {
        let lockPath = lock.path
        guard let found = status(lockPath) else { throw DiskFile.Failure("look", lockPath) }
        guard let held = lock.status, held.inode == found.inode else {
            throw DiskFile.Failure("look", lockPath, code: ENOENT)
        }
        guard unsafe access(path, W_OK) == 0 else { throw DiskFile.Failure("write", path) }
    }

    private func status(_ path: String) -> DiskFile.Status? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        return DiskFile.Status(status)
    }
}
