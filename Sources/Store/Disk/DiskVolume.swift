/// The directory of a node's log files, or in tests a disk that loses power.
///
/// One thread writes; files may be read from any thread.
package protocol DiskVolume: Sendable {
    /// The path, for log lines.
    var path: String { get }
    /// Returns the names of all files.
    func names() throws(DiskFile.Failure) -> [String]
    /// Opens a file for reading and writing; creates it if it is missing and `creates` is true.
    func open(_ name: String, creates: Bool) throws(DiskFile.Failure) -> any VolumeFile
    /// Removes a file.
    func remove(_ name: String) throws(DiskFile.Failure)
    /// Renames a file to a name that no other file has.
    func rename(_ name: String, to new: String) throws(DiskFile.Failure)
    /// Returns once the names of the files are on the disk.
    func sync() throws(DiskFile.Failure)
    /// Throws if the directory is no longer in place, or is not writable.
    func check() throws(DiskFile.Failure)
    /// Returns the bytes of all blocks of the files and the directory.
    func allocatedBytes() -> UInt64
}

extension DiskVolume {
    /// Throws if a write or a sync fails.
    func probe() throws(DiskFile.Failure) {
        let name = "probe"
        let file = try open(name, creates: true)
        try file.write([UInt8](repeating: 0, count: 512).span, at: 0)
        try file.sync()
        try remove(name)
    }
}

/// An open file of a volume; see ``DiskFile``.
package protocol VolumeFile: AnyObject, Sendable {
    /// The path, for log lines.
    var path: String { get }
    /// Returns the size of the file in bytes.
    func size() throws(DiskFile.Failure) -> UInt64
    /// Allocates the blocks of the first `bytes`.
    func allocate(_ bytes: UInt64) throws(DiskFile.Failure)
    /// Sets the size of the file to `bytes`.
    func truncate(to bytes: UInt64) throws(DiskFile.Failure)
    /// Replaces the file's `bytes` with zeros in new pages, so that data already sent from the old
    /// pages does not change.
    func replaceWithZeros(_ bytes: UInt64) throws(DiskFile.Failure)
    /// Writes all of `bytes` at `offset`.
    func write(_ bytes: Span<UInt8>, at offset: UInt64) throws(DiskFile.Failure)
    /// Returns up to `count` bytes at `offset`; fewer only at the end of the file.
    func read(_ count: Int, at offset: UInt64) throws(DiskFile.Failure) -> [UInt8]
    /// Fills `room` from `offset` without waiting for the disk; false if a part is not in the page
    /// cache.
    @unsafe func readNonblocking(
        at offset: UInt64, into room: UnsafeMutableRawBufferPointer
    ) throws(DiskFile.Failure) -> Bool
    /// Returns true if all of these bytes are in the page cache; false also where the system does
    /// not report it.
    func isCached(_ count: Int, at offset: UInt64) -> Bool
    /// Sends bytes to a socket without a copy; returns how many the socket accepted.
    ///
    /// Blocks if they are not in the page cache.
    func send(_ count: Int, at offset: UInt64, to socket: CInt) -> Int
    /// Advises the kernel that these bytes will be read soon; does not block.
    func adviseReadahead(_ count: Int, at offset: UInt64)
    /// Returns once written data is on the disk.
    func sync() throws(DiskFile.Failure)
}

extension VolumeFile {
    /// Fills the first `count` bytes of `room` without waiting for the disk; false if a part is not
    /// in the page cache.
    ///
    /// - Precondition: `room` has at least `count` bytes.
    package func readNonblocking(
        _ count: Int, at offset: UInt64, into room: inout [UInt8]
    ) throws(DiskFile.Failure) -> Bool {
        precondition(room.count >= count, "room for \(room.count) of \(count) bytes")
        let result = unsafe room.withUnsafeMutableBytes { room in
            Result { () throws(DiskFile.Failure) in
                try unsafe readNonblocking(
                    at: offset, into: UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
            }
        }
        return try result.get()
    }

    /// Does nothing, for a file in memory.
    package func replaceWithZeros(_ bytes: UInt64) throws(DiskFile.Failure) {}

    /// Returns false, for a file that is not in the page cache.
    package func isCached(_ count: Int, at offset: UInt64) -> Bool { false }

    /// Sends nothing, for a file without a descriptor.
    package func send(_ count: Int, at offset: UInt64, to socket: CInt) -> Int { 0 }

    /// Does nothing, for a file without readahead.
    package func adviseReadahead(_ count: Int, at offset: UInt64) {}
}

extension DiskFile: VolumeFile {}

extension NodeDirectory: DiskVolume {
    /// Opens a file in the directory.
    package func open(
        _ name: String, creates: Bool
    ) throws(DiskFile.Failure) -> any VolumeFile {
        try DiskFile("\(path)/\(name)", creates: creates)
    }

    /// Returns once the names of the directory's files are on the disk.
    package func sync() throws(DiskFile.Failure) {
        try Self.syncDirectory(path)
    }
}
