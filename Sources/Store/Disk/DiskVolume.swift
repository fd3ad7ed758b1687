/// Where the files of a node's log are: a directory, or in tests a disk that loses its power.
///
/// Used by one writer; files are read from any thread.
package protocol DiskVolume: Sendable {
    /// For log lines.
    var path: String { get }
    /// The names of all files.
    func names() throws(DiskFile.Failure) -> [String]
    /// Opens a file for reading and writing, and makes it if it is missing and `creates`.
    func open(_ name: String, creates: Bool) throws(DiskFile.Failure) -> any VolumeFile
    func remove(_ name: String) throws(DiskFile.Failure)
    /// Gives a file another name, which no other has.
    func rename(_ name: String, to new: String) throws(DiskFile.Failure)
    /// Returns when the names are on the disk.
    func sync() throws(DiskFile.Failure)
    /// Fails if the directory is not where it was, or nothing can be written to it.
    func check() throws(DiskFile.Failure)
    /// Bytes of all blocks below it.
    func allocatedBytes() -> UInt64
}

extension DiskVolume {
    /// Fails if nothing can be written and synced.
    func probe() throws(DiskFile.Failure) {
        let name = "probe"
        let file = try open(name, creates: true)
        try file.write([UInt8](repeating: 0, count: 512).span, at: 0)
        try file.sync()
        try remove(name)
    }
}

/// An open file of a volume.
package protocol VolumeFile: AnyObject, Sendable {
    /// For log lines.
    var path: String { get }
    func size() throws(DiskFile.Failure) -> UInt64
    /// Allocates the blocks of the first `bytes`.
    func allocate(_ bytes: UInt64) throws(DiskFile.Failure)
    func truncate(to bytes: UInt64) throws(DiskFile.Failure)
    /// Makes zeros of the file's `bytes`, so that what was sent of it before stays what it was.
    func replaceWithZeros(_ bytes: UInt64) throws(DiskFile.Failure)
    /// Writes all of `bytes` at `offset`.
    func write(_ bytes: Span<UInt8>, at offset: UInt64) throws(DiskFile.Failure)
    /// Up to `count` bytes; fewer only at the file's end.
    func read(_ count: Int, at offset: UInt64) throws(DiskFile.Failure) -> [UInt8]
    /// Fills `room` without ever waiting for a disk; false if not all of it is in the page cache.
    @unsafe func readNonblocking(
        at offset: UInt64, into room: UnsafeMutableRawBufferPointer
    ) throws(DiskFile.Failure) -> Bool
    /// True if all of these bytes are in the page cache; false, too, where the system does not
    /// tell.
    func isCached(_ count: Int, at offset: UInt64) -> Bool
    /// Sends bytes to a socket without a copy; how many of them it has taken.
    ///
    /// Waits for a disk if they are not in the page cache.
    func send(_ count: Int, at offset: UInt64, to socket: CInt) -> Int
    /// These bytes will be read soon: the disk may begin to fetch them. Waits for nothing.
    func adviseReadahead(_ count: Int, at offset: UInt64)
    /// Returns when what was written is on the disk.
    func sync() throws(DiskFile.Failure)
}

extension VolumeFile {
    /// Fills the first `count` bytes of `room`, which has as many, without ever waiting for a disk;
    /// false if not all of it is in the page cache.
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

    package func replaceWithZeros(_ bytes: UInt64) throws(DiskFile.Failure) {}

    package func isCached(_ count: Int, at offset: UInt64) -> Bool { false }

    package func send(_ count: Int, at offset: UInt64, to socket: CInt) -> Int { 0 }

    package func adviseReadahead(_ count: Int, at offset: UInt64) {}
}

extension DiskFile: VolumeFile {}

extension NodeDirectory: DiskVolume {
    package func open(
        _ name: String, creates: Bool
    ) throws(DiskFile.Failure) -> any VolumeFile {
        try DiskFile("\(path)/\(name)", creates: creates)
    }

    package func sync() throws(DiskFile.Failure) {
        try Self.syncDirectory(path)
    }
}
