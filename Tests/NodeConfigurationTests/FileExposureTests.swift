import NodeConfiguration
import Testing

@Suite("Who can read a file that holds a secret")
struct FileExposureTests {
    /// Of everything; its group is 20, unless it says otherwise.
    private let owner: UInt32 = 10

    private func facts(_ mode: UInt32, group: UInt32 = 20) -> FileExposure.Facts {
        .init(mode: mode, owner: owner, group: group)
    }

    private func readers(
        _ file: UInt32, _ directories: [FileExposure.Facts], by user: UInt32 = 10
    ) -> FileExposure? {
        FileExposure(of: facts(file), below: directories, by: user)
    }

    @Test("a file of mode 600 is its owner's, wherever it lies")
    func closed() {
        #expect(readers(0o600, [facts(0o777), facts(0o755)]) == nil)
        #expect(readers(0o400, []) == nil)
        #expect(readers(0o611, [facts(0o755)]) == nil, "to run it or to write it is not to read it")
    }

    @Test("everybody reads what all may read, if every directory above lets them through")
    func everybody() {
        #expect(readers(0o644, [facts(0o755), facts(0o711)]) == .everybody)
        #expect(readers(0o604, [facts(0o755)], by: 99) == .everybody)
        #expect(readers(0o644, [facts(0o755), facts(0o700), facts(0o755)]) == nil)
        #expect(readers(0o444, [facts(0o744)]) == nil, "to list a directory is not to pass it")
    }

    @Test("a group reads what it may read, and passes directories as their group or as anybody")
    func ofGroup() {
        #expect(readers(0o640, [facts(0o750), facts(0o755)]) == .group)
        #expect(readers(0o644, [facts(0o750)]) == .group)
        #expect(readers(0o640, [facts(0o750, group: 21)]) == nil)
        #expect(readers(0o640, [facts(0o701, group: 21)]) == .group)
        #expect(readers(0o640, [facts(0o700)]) == nil)
    }

    @Test("the group of another's file may be what lets the node in")
    func ofAnother() {
        #expect(readers(0o640, [facts(0o755)], by: 11) == nil)
    }
}
