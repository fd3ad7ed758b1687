import Ground
import Testing
import Tiers
import Trials

@Suite("The table of marks")
struct MarkTableTests {
    private static let tags = ["a", "b", "c", "a.b", ""].map { Array($0.utf8) }

    private func text(_ dice: inout Dice, _ bytes: String, most: Int) -> [UInt8] {
        let alphabet = Array(bytes.utf8)
        return (0..<dice.next() % UInt64(most)).map { _ in
            alphabet[Int(dice.next() % UInt64(alphabet.count))]
        }
    }

    private func key(_ dice: inout Dice) -> [UInt8] {
        let scheme = ["http://", "https://", "//", ""][Int(dice.next() % 4)]
        return Array(scheme.utf8) + text(&dice, "ab", most: 3) + text(&dice, "ab/?:.", most: 9)
    }

    private func name(_ dice: inout Dice) -> EntryName {
        EntryName([UInt8](repeating: UInt8(dice.next() % 4), count: 32).span)
    }

    private func stamp(_ dice: inout Dice) -> Stamp {
        Stamp(epoch: dice.next() % 3, count: dice.next() % 5)
    }

    private func mark(_ dice: inout Dice) -> DiskMark {
        let target: DiskMark.Target =
            switch dice.next() % 12 {
            case 0: .everything
            case 1: .entry(name(&dice))
            case 2...3: .url(Array(URLName.name(ofKey: key(&dice))))
            case 4: .tag(Self.tags[Int(dice.next() % 5)])
            case 5...7: .host(text(&dice, "ab.:", most: 4))
            default: .prefix(text(&dice, "ab", most: 3) + text(&dice, "ab/?:.", most: 6))
            }
        return DiskMark(target, isSoft: dice.next() % 2 == 0, stamp: stamp(&dice))
    }

    @Test("of any marks it says what the worst of them says", arguments: 0..<8)
    func worst(seed: UInt64) {
        var dice = Dice(seed: 4_100 + seed)
        var seen: [DiskMark.Effect?: Int] = [:]
        for _ in 0..<Trials.count(400) {
            let marks = (0..<dice.next() % 4).map { _ in mark(&dice) }
            let table = MarkTable(marks)
            for _ in 0..<40 {
                let (name, key, stamp) = (name(&dice), key(&dice), stamp(&dice))
                var tags = Self.tags.filter { _ in dice.next() % 4 == 0 }
                for _ in 0..<dice.next() % 3 {
                    tags.append(URLName.tag(URLName.name(ofKey: self.key(&dice))))
                }
                let effects = marks.compactMap {
                    $0.effect(on: name, key: key, tags: tags, stamp: stamp)
                }
                let worst = effects.contains(.dead) ? DiskMark.Effect.dead : effects.first
                let found = table.effect(on: name, key: key, tags: tags, stamp: stamp)
                #expect(found == worst, "\(marks), \(String(decoding: key, as: UTF8.self))")
                seen[found, default: 0] += 1
            }
        }
        let isEach = seen.count == 3 && seen.values.allSatisfy { $0 > 300 }
        #expect(isEach || Trials.areFew, "\(seen)")
    }

    @Test("a fold covers what is older, and leaves as it was what is not", arguments: 0..<4)
    func fold(seed: UInt64) {
        var dice = Dice(seed: 5_200 + seed)
        var (exact, weaker) = (0, 0)
        for _ in 0..<Trials.count(400) {
            let marks = (0..<dice.next() % 12).map { _ in mark(&dice) }
            let whole = MarkTable(marks)
            var folded = whole
            let to = stamp(&dice)
            folded.fold(upTo: to)
            #expect(folded.count <= whole.count)
            for _ in 0..<40 {
                let (name, key, stamp) = (name(&dice), key(&dice), stamp(&dice))
                let tags = Self.tags.filter { _ in dice.next() % 4 == 0 }
                let before = whole.effect(on: name, key: key, tags: tags, stamp: stamp)
                let after = folded.effect(on: name, key: key, tags: tags, stamp: stamp)
                if stamp >= to {
                    #expect(after == before)
                    exact += 1
                } else {
                    #expect(before == nil || after != nil)
                    if before == .dead, after == .stale { weaker += 1 }
                }
            }
        }
        #expect(
            exact > Trials.count(3_000) && (weaker > 100 || Trials.areFew), "\(exact), \(weaker)")
    }

    @Test("half of what is covered was last invalidated up to the median")
    func median() throws {
        var table = MarkTable()
        #expect(table.medianStamp == nil)
        for count in 1...100 as ClosedRange<UInt64> {
            let url = DiskMark.Target.url(Array("a.test/\(count * 37 % 101)".utf8))
            table.apply(DiskMark(url, isSoft: false, stamp: Stamp(epoch: 1, count: count)))
        }
        let median = try #require(table.medianStamp)
        #expect(median == Stamp(epoch: 1, count: 50))
        table.fold(upTo: median)
        #expect(table.count == 50)
    }

    @Test("tables by one key join, and those by another say nothing of each other's names")
    func joins() {
        let url = Array("a.test/1".utf8)
        let key = Array("http://a.test/1".utf8)
        func isCovered(by table: MarkTable) -> Bool {
            table.effect(on: nil, key: key, tags: [], stamp: .zero) != nil
        }
        let mark = DiskMark(.url(url), isSoft: false, stamp: Stamp(epoch: 1, count: 1))
        let other = MarkKey(first: 1, second: 2)
        let stored = StoredMark(mark, key: other)
        let named = MarkTable([stored], key: other)
        #expect(isCovered(by: named))
        let misread = MarkTable([stored], key: .known)
        #expect(!isCovered(by: misread))
        var table = MarkTable(key: other)
        table.join(named)
        #expect(isCovered(by: table))
        var foreign = MarkTable(key: .known)
        foreign.join(named)
        #expect(!isCovered(by: foreign))
        foreign.join(
            MarkTable(
                [DiskMark(.everything, isSoft: false, stamp: mark.stamp)], key: other))
        #expect(isCovered(by: foreign))
    }

    @Test("a prefix of more bytes than a mark can say is found")
    func longPrefix() {
        let prefix = Array("a.test/".utf8) + [UInt8](repeating: 0x61, count: 70_000)
        let mark = DiskMark(.prefix(prefix), isSoft: false, stamp: Stamp(epoch: 1, count: 1))
        let table = MarkTable([StoredMark(mark, key: .known)], key: .known)
        let key = Array("http://".utf8) + prefix
        for rest in ["", "/1.png"] {
            let effect = table.effect(
                on: nil, key: key + Array(rest.utf8), tags: [], stamp: .zero)
            #expect(effect == .dead)
        }
        let other = table.effect(on: nil, key: key + [0x61], tags: [], stamp: .zero)
        #expect(other == nil)
    }

    @Test("a long URL is covered by what it begins with")
    func slashes() {
        let table = MarkTable([
            DiskMark(
                .prefix(Array("a.test/img".utf8)), isSoft: false, stamp: Stamp(epoch: 1, count: 1))
        ])
        let key = Array("http://a.test/img".utf8) + [UInt8](repeating: 0x2F, count: 8_000)
        let name = EntryName([UInt8](repeating: 7, count: 32).span)
        #expect(table.effect(on: name, key: key, tags: [], stamp: .zero) == .dead)
        let other = Array("http://b.test".utf8) + [UInt8](repeating: 0x2F, count: 8_000)
        #expect(table.effect(on: name, key: other, tags: [], stamp: .zero) == nil)
    }
}
