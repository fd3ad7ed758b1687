import Ground
import Testing
import Tiers

@Suite("The stored fingerprints of tag rules")
struct TagRuleFingerprintsTests {
    private var note: TagRuleFingerprints {
        var note = TagRuleFingerprints()
        (note["a.test"], note["b.test"], note["*"]) = (1, .max, 0)
        return note
    }

    @Test("What is written is read again, whatever follows it")
    func roundTrip() throws {
        for note in [note, TagRuleFingerprints()] {
            #expect(try TagRuleFingerprints(note.bytes.span) == note)
            #expect(try TagRuleFingerprints((note.bytes + [1, 2, 3]).span) == note)
        }
        #expect(note.bytes.count == 24 + 3 * 16)
        #expect(note["a.test"] == 1 && note["c.test"] == nil)
    }

    @Test("A truncated or corrupted file is refused")
    func damage() {
        let bytes = note.bytes
        for end in 0..<bytes.count {
            #expect(throws: DiskFormatError.self) {
                try TagRuleFingerprints(Array(bytes[..<end]).span)
            }
        }
        // Another minor version is compatible.
        for index in bytes.indices where index != 10 && index != 11 {
            var other = bytes
            other[index] ^= 0x10
            #expect(throws: DiskFormatError.self, "byte \(index)") {
                try TagRuleFingerprints(other.span)
            }
        }
        var longer = note
        longer["c.test"] = 7
        let torn = Array(longer.bytes[..<40]) + bytes[40...]
        #expect(throws: DiskFormatError.self) { try TagRuleFingerprints(torn.span) }
    }

    @Test("Merging two keeps the fingerprints on which both agree")
    func agreeing() {
        var other = note
        (other["a.test"], other["b.test"], other["c.test"]) = (2, nil, 3)
        var both = TagRuleFingerprints()
        both["*"] = 0
        #expect(note.intersection(other) == both && other.intersection(note) == both)
        #expect(note.intersection(note) == note)
    }
}
