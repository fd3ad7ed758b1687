import Ground
import Store
import Testing

@Suite("The files of the journal")
struct JournalFilesTests {
    private let room = JournalSpace(limitBytes: 0)
    private let volume = SimulatedVolume()
    private var size: Int { volume.bytes(of: "journal-1").count }

    @Test("Appended bytes are read, followed by nothing but zeros, at most a quarter")
    func filled() throws {
        let files = JournalFiles(volume, space: room)
        var dice = SplitMix64(seed: 1)
        try files.create(1)
        try files.append([UInt8](repeating: 1, count: 80), to: 1)
        #expect(size == 80, "nothing follows the header before it is synced")
        try files.sync(1)
        var all = [UInt8](repeating: 1, count: 80)
        var sizes: Set<Int> = []
        for _ in 0..<200 {
            let bytes = (0..<Int.random(in: 1...600, using: &dice)).map { _ in
                UInt8.random(in: 1...255, using: &dice)
            }
            try files.append(bytes, to: 1)
            try files.sync(1)
            all += bytes
            sizes.insert(size)
            let found = try files.read(1)
            #expect(found.starts(with: all) && found.dropFirst(all.count).allSatisfy { $0 == 0 })
            #expect(found.count - all.count <= room.fileBytes / 4)
        }
        #expect(sizes.count < 20, "most appends do not change the size: \(sizes.count)")
        volume.losePower(using: &dice)
        #expect(try JournalFiles(volume, space: room).read(1).starts(with: all))
    }
}
