import Ground
import Store
import Testing
import Tiers

@Suite("The file of tag rule fingerprints")
struct TagRuleFileTests {
    private func note(_ rules: UInt64, sites: Int = 3) -> TagRuleFingerprints {
        var note = TagRuleFingerprints()
        for site in 0..<sites { note["\(site).test"] = rules &+ UInt64(site) }
        return note
    }

    @Test("A written file is read again, also by another process and after a power failure")
    func written() throws {
        let volume = SimulatedVolume()
        #expect(try TagRuleFile(volume).read() == TagRuleFingerprints())
        var dice = SplitMix64(seed: 1)
        for (number, sites) in [3, 40, 1, 0, 2].enumerated() {
            let note = note(UInt64(number * 100), sites: sites)
            try TagRuleFile(volume).write(note)
            #expect(try TagRuleFile(volume).read() == note)
            volume.losePower(using: &dice)
            #expect(try TagRuleFile(volume).read() == note)
        }
    }

    @Test("After a failing write and a power failure the file is the old one, the new one, or none")
    func torn() throws {
        let (old, new) = (note(1, sites: 100), note(500, sites: 90))
        var met: Set<TagRuleFingerprints> = []
        for seed in 0..<60 as Range<UInt64> {
            var dice = SplitMix64(seed: seed)
            for operation in 0..<5 {
                let volume = SimulatedVolume()
                try TagRuleFile(volume).write(old)
                let first = volume.operations + operation
                volume.edit { $0.operations = first..<first + 1 }
                let isWritten = (try? TagRuleFile(volume).write(new)) != nil
                if !isWritten { #expect(try TagRuleFile(volume).read() == TagRuleFingerprints()) }
                volume.losePower(using: &dice)
                let found = try TagRuleFile(volume).read()
                #expect(
                    isWritten ? found == new : [old, new, TagRuleFingerprints()].contains(found))
                met.insert(found)
            }
        }
        #expect(met.contains(new) && met.count > 1)
    }

    @Test("Another file is ignored, and an unreadable one is reported")
    func others() throws {
        let volume = SimulatedVolume()
        try volume.open("originals", creates: true).write([1, 2, 3].span, at: 0)
        #expect(try TagRuleFile(volume).read() == TagRuleFingerprints())
        volume.edit { $0.unopenable = ["originals"] }
        #expect(throws: DiskFile.Failure.self) { try TagRuleFile(volume).read() }
    }
}
