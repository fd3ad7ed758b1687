import Foundation
import Ground
import Store
import Testing
import Tiers

/// A temporary directory that is removed with its object.
final class TemporaryDirectory {
    let path = FileManager.default.temporaryDirectory
        .appendingPathComponent("nuthatch-\(UUID().uuidString)").path

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

@Suite("The directory of a node")
struct NodeDirectoryTests {
    private let root = TemporaryDirectory()
    private let first = NodeID(low: 1, high: 2)
    private let second = NodeID(low: 3, high: 4)

    private func open(_ id: NodeID, wall: Int64 = 1_000) throws -> NodeDirectory {
        try NodeDirectory(below: root.path, newID: { _ in id }, wall: wall) { _ in 1 << 20 }
    }

    @Test("Nodes on one volume have a directory each and find it again after a restart")
    func oneEach() throws {
        var one: NodeDirectory? = try open(first)
        let other = try open(second)
        #expect(one?.path == root.path + "/node-0" && one?.identity.nodeID == first)
        #expect(other.path == root.path + "/node-1" && other.identity.nodeID == second)
        one = nil
        let again = try open(NodeID(low: 9, high: 9))
        #expect(again.path == root.path + "/node-0" && again.identity.nodeID == first)
        withExtendedLifetime(other) {}
    }

    @Test("Each start has a new boot epoch and knows the newest wall time")
    func epochs() throws {
        for (epoch, wall) in [(1, 5_000), (2, 7_000), (3, 6_000)] as [(UInt64, Int64)] {
            let directory = try open(first, wall: wall)
            #expect(directory.identity.bootEpoch == epoch)
            #expect(directory.identity.newestWall == min(wall, 7_000) + (epoch == 3 ? 1_000 : 0))
            #expect(directory.identityDamage == nil)
        }
    }

    @Test("Existing segments keep their size; without any the size is chosen again")
    func segmentSize() throws {
        var formerSizes: [UInt64?] = []
        let open = { [root, first] (wanted: UInt64) in
            try NodeDirectory(below: root.path, newID: { _ in first }, wall: 1_000) { former in
                formerSizes.append(former)
                return former ?? wanted
            }
        }
        #expect(try open(1 << 20).identity.segmentBytes == 1 << 20)
        // Empty, or never written.
        #expect(try open(2 << 20).identity.segmentBytes == 2 << 20)
        let segment = root.path + "/node-0/" + SegmentFiles.name(3)
        try #require(FileManager.default.createFile(atPath: segment, contents: nil))
        #expect(try open(4 << 20).identity.segmentBytes == 2 << 20)
        try FileManager.default.removeItem(atPath: segment)
        #expect(try open(4 << 20).identity.segmentBytes == 4 << 20)
        #expect(formerSizes == [nil, nil, 2 << 20, nil])
    }

    @Test("An unreadable identity is replaced and reported as damaged")
    func damaged() throws {
        var directory: NodeDirectory? = try open(first)
        let file = try DiskFile(root.path + "/node-0/identity", creates: false)
        directory = nil
        try file.write([0xFF].span, at: 30)
        directory = try open(second)
        #expect(directory?.identityDamage == .checksumMismatch)
        #expect(directory?.identity.nodeID == second && directory?.identity.bootEpoch == 1)
        directory = nil
        try DiskFile(root.path + "/node-0/identity", creates: false).truncate(to: 50)
        directory = try open(first)
        #expect(directory?.identityDamage == .truncated && directory?.identity.nodeID == first)
    }

    @Test("A directory keeps its name for later processes, and no other has it")
    func name() {
        var dice = SplitMix64(seed: 1)
        let names = ["/a/node-0", "/b/c/node-0", "/a/node-1"]
        let ids = names.map { NodeID(named: NodeID.directoryName, in: $0, using: &dice) }
        #expect(ids[0].hasSameName(as: ids[1]) && ids[0] != ids[1])
        #expect(!ids[0].hasSameName(as: ids[2]))
        let nowhere = NodeID(named: NodeID.directoryName, in: nil, using: &dice)
        #expect(!nowhere.hasSameName(as: ids[0]))
    }

    @Test("A root that cannot be created is refused with its path")
    func noRoot() {
        let path = "/proc/nuthatch"
        let error = #expect(throws: NodeDirectory.ClaimError.self) {
            try NodeDirectory(below: path, newID: { _ in first }, wall: 0) { _ in 1 }
        }
        #expect(error.map { "\($0)" }?.contains(path) == true)
    }

    @Test("A file is read as written, and its blocks are allocated in advance")
    func files() throws {
        let directory = try open(first)
        let file = try DiskFile(directory.path + "/segment-00000", creates: true)
        let before = directory.allocatedBytes()
        try file.allocate(1 << 20)
        #expect(directory.allocatedBytes() >= before + 1 << 20)
        #expect(try file.size() == 1 << 20)
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try file.write(bytes.span, at: 4_097)
        try file.sync()
        #expect(directory.allocatedBytes() == before + 1 << 20)
        #expect(try file.read(10_000, at: 4_097) == bytes)
        #expect(try file.read(100, at: 1 << 20 - 10).count == 10)
        #expect(try file.read(100, at: 1 << 21).isEmpty)
        var room = [UInt8](repeating: 0, count: 10_001)
        let isThere = try file.readNonblocking(10_000, at: 4_097, into: &room)
        #expect(!isThere || room == bytes + [0])
        let isPastEnd = try file.readNonblocking(100, at: 1 << 20 - 10, into: &room)
        #expect(!isPastEnd)
    }

    @Test("A system error gives the operation, the path and the reason")
    func failures() throws {
        let error = #expect(throws: DiskFile.Failure.self) {
            try DiskFile("/nowhere/at/all", creates: true)
        }
        #expect(error.map { "\($0)" }?.contains("/nowhere/at/all") == true)
        #expect(error?.code == ENOENT)
        let full = try DiskFile("/dev/full", creates: false)
        #expect(throws: DiskFile.Failure.self) { try full.write([1, 2, 3].span, at: 0) }
    }
}
