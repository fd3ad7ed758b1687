package import Ground
import Glibc
package import Tiers

/// The directory below `--cache-dir` that this node alone writes to.
///
/// Of `node-0`, `node-1`, … a node takes the first on which it gets the lock. So nodes that share a
/// volume have one each, and find them again after a restart.
package final class NodeDirectory: Sendable {
    /// Its path.
    package let path: String
    /// Who writes here, with the epoch of this start, which is on the disk.
    package let identity: NodeIdentity
    /// The newest wall time known before this start, in milliseconds since 1970.
    package let formerWall: Int64
    /// What was found in place of an identity that could be read; nil if there was one, or the
    /// directory is new.
    package let identityDamage: DiskFormatError?
    private let lock: DiskFile

    /// Nodes that may share one volume.
    package static let nodesMax = 1024

    /// Why no directory can be used.
    package enum ClaimError: Error, Hashable, CustomStringConvertible {
        case failure(DiskFile.Failure)
        /// ``nodesMax`` nodes hold theirs.
        case allTaken(String)

        package var description: String {
            switch self {
            case .failure(let failure): "\(failure)"
            case .allTaken(let path): "\(NodeDirectory.nodesMax) nodes use \(path) already"
            }
        }
    }

    /// Takes a directory below `root`, which is made if it is missing, and begins a boot epoch.
    ///
    /// `plan` is told the size of the segments that are there, or nil, and says the one from now
    /// on. `newID` is for a directory that has no identity yet; the boot epoch is greater than
    /// `formerEpoch`. `wall` is the wall time in milliseconds since 1970.
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

    /// Makes the directory, and those above it that are missing.
    private static func make(_ path: String) throws(DiskFile.Failure) {
        if let end = path.lastIndex(of: "/"), end > path.startIndex,
            unsafe access(String(path[..<end]), F_OK) != 0
        {
            try make(String(path[..<end]))
        }
        guard unsafe mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw DiskFile.Failure("make directory", path)
    }

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

    /// Puts an identity in place of the last one; after a power failure there is one or the other.
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

    /// Returns when the directory's names are on the disk.
    static func syncDirectory(_ path: String) throws(DiskFile.Failure) {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw DiskFile.Failure("open", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw DiskFile.Failure("sync", path) }
    }

    /// Bytes of the blocks that the files of the directory have, and the directory itself.
    package func allocatedBytes() -> UInt64 {
        let files = ((try? names()) ?? []) + ["."]
        return files.reduce(0) { $0 + (status("\(path)/\($1)")?.allocated ?? 0) }
    }

    /// The names of all files, without the directory itself and its parent.
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

    package func remove(_ name: String) throws(DiskFile.Failure) {
        guard unsafe unlink("\(path)/\(name)") == 0 else {
            throw DiskFile.Failure("remove", "\(path)/\(name)")
        }
    }

    package func rename(_ name: String, to new: String) throws(DiskFile.Failure) {
        guard unsafe Glibc.rename("\(path)/\(name)", "\(path)/\(new)") == 0 else {
            throw DiskFile.Failure("rename", "\(path)/\(name)")
        }
    }

    /// Fails if the locked file is not the one at its path any more, or the file system takes no
    /// writes.
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
