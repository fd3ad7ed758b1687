import NodeConfiguration
import Testing

@Suite("Who can read a file with a secret")
struct FileExposureTests {
    /// The owner of all files; their group is 20 unless given.
    private let owner: UInt32 = 10

    private func facts(_ mode: UInt32, group: UInt32 = 20) -> FileExposure.Facts {
        .init(mode: mode, owner: owner, group: group)
    }

    private func readers(
        _ file: UInt32, _ directories: [FileExposure.Facts], by user: UInt32 = 10
    ) -> FileExposure? {
        FileExposure(of: facts(file), below: directories, by: user)
    }

    @Test("A file with mode 600 is readable by its owner only, wherever it is")
    func closed() {
        #expect(readers(0o600, [facts(0o777), facts(0o755)]) == nil)
        #expect(readers(0o400, []) == nil)
        #expect(readers(0o611, [facts(0o755)]) == nil, "executing or writing is not reading")
    }

    @Test("A world-readable file is exposed if every directory above it can be entered")
    func everybody() {
        #expect(readers(0o644, [facts(0o755), facts(0o711)]) == .everybody)
        #expect(readers(0o604, [facts(0o755)], by: 99) == .everybody)
        #expect(readers(0o644, [facts(0o755), facts(0o700), facts(0o755)]) == nil)
        #expect(readers(0o444, [facts(0o744)]) == nil, "listing a directory is not entering it")
    }

    @Test("A group-readable file is exposed if its group can enter the directories")
    func ofGroup() {
        #expect(readers(0o640, [facts(0o750), facts(0o755)]) == .group)
        #expect(readers(0o644, [facts(0o750)]) == .group)
        #expect(readers(0o640, [facts(0o750, group: 21)]) == nil)
        #expect(readers(0o640, [facts(0o701, group: 21)]) == .group)
        #expect(readers(0o640, [facts(0o700)]) == nil)
    }

    @Test("Group access to another owner's file may be the node's own")
    func ofAnother() {
        #expect(readers(0o640, [facts(0o755)], by: 11) == nil)
    }
}
