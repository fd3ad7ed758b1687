import Ground
import Testing
import Wire

@Suite("The name of an entry")
struct EntryNameTests {
    /// The part of the name that determines its place on the ring.
    private func place(_ name: EntryName) -> UInt64 { name.digest.first >> 46 }

    private let url = Array("http://img.example/a.jpg".utf8)

    @Test("The name of a URL is its SHA-256")
    func plain() {
        var bytes: [UInt8] = []
        EntryName(ofKey: Array("abc".utf8)).append(to: &bytes)
        #expect(bytes.prefix(4) == [0xBA, 0x78, 0x16, 0xBF])
        #expect(bytes.suffix(4) == [0xF2, 0x00, 0x15, 0xAD])
    }

    @Test("Variants of a URL have different names and one place on the ring")
    func variants() {
        let name = EntryName(ofKey: url)
        let keys = ["\n0000000000000001\naccept:a\n", "\n0000000000000001\naccept\n"]
        let selected = keys.map { EntryName(ofKey: url + Array($0.utf8)) }
        #expect(Set(selected + [name]).count == 3)
        #expect(Set(selected.map(place)) == [place(name)])
        #expect(place(EntryName(ofKey: url + [0x2F])) != place(name))
    }
}
