import Ground
import Testing
import Tiers
import Trials

@Suite("The table of marks")
struct MarkTableTests {
    private static let tags = ["a", "b", "c", "a.b", ""].map { Array($0.utf8) }

    private func text(_ dice: inout SplitMix64, _ bytes: String, most: Int) -> [UInt8] {
        let alphabet = Array(bytes.utf8)
        return (0..<dice.next() % UInt64(most)).map { _ in
            alphabet[Int(dice.next() % UInt64(alphabet.count))]
        }
    }

    private func key(_ dice: inout SplitMix64) -> [UInt8] {
        let scheme = ["http://", "https://", "//", ""][Int(dice.next() % 4)]
        return Array(scheme.utf8) + text(&dice, "ab", most: 3) + text(&dice, "ab/?:.", most: 9)
    }

    private func randomVersion(_ dice: inout SplitMix64) -> InvalidationVersion {
        InvalidationVersion(epoch: dice.next() % 3, count: dice.next() % 5)
    }

    private func mark(_ dice: inout SplitMix64) -> InvalidationMark {
        let target: PurgeTarget =
            switch dice.next() % 12 {
            case 0: .everything
            case 1...3: .url(Array(URLName.name(ofKey: key(&dice))))
            case 4: .tag(Self.tags[Int(dice.next() % 5)])
            case 5...7: .prefix(host: text(&dice, "ab.:", most: 4), path: [])
            default:
                .prefix(
                    host: text(&dice, "ab", most: 3), path: text(&dice, "ab/?:.", most: 6))
            }
        return InvalidationMark(target, isSoft: dice.next() % 2 == 0, version: randomVersion(&dice))
    }

    @Test("The table reports the strongest effect of its marks", arguments: 0..<8)
    func worst(seed: UInt64) {
        var dice = SplitMix64(seed: 4_100 + seed)
        var seen: [InvalidationMark.Effect?: Int] = [:]
        for _ in 0..<Trials.count(400) {
            let marks = (0..<dice.next() % 4).map { _ in mark(&dice) }
            let table = MarkTable(marks)
            for _ in 0..<40 {
                let (key, version) = (key(&dice), randomVersion(&dice))
                var tags = Self.tags.filter { _ in dice.next() % 4 == 0 }
                for _ in 0..<dice.next() % 3 {
                    tags.append(URLName.tag(URLName.name(ofKey: self.key(&dice))))
                }
                let effects = marks.compactMap {
                    $0.effect(on: key, tags: tags, version: version)
                }
                let worst =
                    effects.contains(.purged) ? InvalidationMark.Effect.purged : effects.first
                let found = table.effect(on: key, tags: tags, version: version)
                #expect(found == worst, "\(marks), \(String(decoding: key, as: UTF8.self))")
                seen[found, default: 0] += 1
            }
        }
        let isEach = seen.count == 3 && seen.values.allSatisfy { $0 > 300 }
        #expect(isEach || Trials.isReduced, "\(seen)")
    }

    @Test("Folding covers older entries and changes nothing for newer ones", arguments: 0..<4)
    func fold(seed: UInt64) {
        var dice = SplitMix64(seed: 5_200 + seed)
        var (exact, weaker) = (0, 0)
        for _ in 0..<Trials.count(400) {
            let marks = (0..<dice.next() % 12).map { _ in mark(&dice) }
            let whole = MarkTable(marks)
            var folded = whole
            let to = randomVersion(&dice)
            folded.fold(upTo: to)
            #expect(folded.count <= whole.count)
            for _ in 0..<40 {
                let (key, version) = (key(&dice), randomVersion(&dice))
                let tags = Self.tags.filter { _ in dice.next() % 4 == 0 }
                let before = whole.effect(on: key, tags: tags, version: version)
                let after = folded.effect(on: key, tags: tags, version: version)
                if version >= to {
                    #expect(after == before)
                    exact += 1
                } else {
                    #expect(before == nil || after != nil)
                    if before == .purged, after == .stale { weaker += 1 }
                }
            }
        }
        #expect(
            exact > Trials.count(3_000) && (weaker > 100 || Trials.isReduced), "\(exact), \(weaker)"
        )
    }

    @Test("Half of the marks are not newer than the median version")
    func median() throws {
        var table = MarkTable()
        #expect(table.medianVersion == nil)
        for count in 1...100 as ClosedRange<UInt64> {
            let url = PurgeTarget.url(Array("a.test/\(count * 37 % 101)".utf8))
            table.apply(
                InvalidationMark(
                    url, isSoft: false, version: InvalidationVersion(epoch: 1, count: count)))
        }
        let median = try #require(table.medianVersion)
        #expect(median == InvalidationVersion(epoch: 1, count: 50))
        table.fold(upTo: median)
        #expect(table.count == 50)
    }

    @Test("Tables with the same hash key merge; with another key only whole-cache marks are taken")
    func joins() {
        let url = Array("a.test/1".utf8)
        let key = Array("http://a.test/1".utf8)
        func isCovered(by table: MarkTable) -> Bool {
            table.effect(on: key, tags: [], version: .zero) != nil
        }
        let mark = InvalidationMark(
            .url(url), isSoft: false, version: InvalidationVersion(epoch: 1, count: 1))
        let other = MarkHashKey(first: 1, second: 2)
        let named = MarkTable([mark], key: other)
        #expect(isCovered(by: named))
        var table = MarkTable(key: other)
        table.merge(named)
        #expect(isCovered(by: table))
        var foreign = MarkTable(key: .publiclyKnown)
        foreign.merge(named)
        #expect(!isCovered(by: foreign))
        foreign.merge(
            MarkTable(
                [InvalidationMark(.everything, isSoft: false, version: mark.version)], key: other))
        #expect(isCovered(by: foreign))
    }

    @Test("A very long prefix is found")
    func longPrefix() {
        let prefix = Array("a.test/".utf8) + [UInt8](repeating: 0x61, count: 70_000)
        let target = PurgeTarget.prefix(
            host: Array("a.test".utf8), path: Array(prefix.dropFirst(6)))
        let mark = InvalidationMark(
            target, isSoft: false, version: InvalidationVersion(epoch: 1, count: 1))
        let table = MarkTable([mark])
        let key = Array("http://".utf8) + prefix
        for rest in ["", "/1.png"] {
            let effect = table.effect(on: key + Array(rest.utf8), tags: [], version: .zero)
            #expect(effect == .purged)
        }
        let other = table.effect(on: key + [0x61], tags: [], version: .zero)
        #expect(other == nil)
    }

    @Test("A long URL is matched by its prefix")
    func slashes() {
        let table = MarkTable([
            InvalidationMark(
                .prefix(host: Array("a.test".utf8), path: Array("/img".utf8)), isSoft: false,
                version: InvalidationVersion(epoch: 1, count: 1))
        ])
        let key = Array("http://a.test/img".utf8) + [UInt8](repeating: 0x2F, count: 8_000)
        #expect(table.effect(on: key, tags: [], version: .zero) == .purged)
        let other = Array("http://b.test".utf8) + [UInt8](repeating: 0x2F, count: 8_000)
        #expect(table.effect(on: other, tags: [], version: .zero) == nil)
    }

    @Test("A table from encoded chunks and later marks is equivalent to the original")
    func pieces() throws {
        var dice = SplitMix64(seed: 6_300)
        let key = MarkHashKey(first: 3, second: 4)
        for _ in 0..<Trials.count(400) {
            let marks = (0..<dice.next() % 12).map { _ in mark(&dice) }
            let whole = MarkTable(marks, key: key)
            let (first, second) = (randomVersion(&dice), randomVersion(&dice))
            let (from, to) = (min(first, second), max(first, second))
            let pieces =
                whole.encodedChunks { $0 <= from } + whole.encodedChunks { $0 > from && $0 <= to }
            var read = try #require(
                MarkTable(encodedChunks: pieces.shuffled(using: &dice), key: .publiclyKnown))
            #expect(read.key == key)
            for mark in marks where mark.version > to { read.apply(mark) }
            for _ in 0..<40 {
                let (key, version) = (self.key(&dice), randomVersion(&dice))
                let tags = Self.tags.filter { _ in dice.next() % 4 == 0 }
                #expect(
                    read.effect(on: key, tags: tags, version: version)
                        == whole.effect(on: key, tags: tags, version: version))
            }
        }
        let many = MarkTable(
            (0..<10_000).map {
                InvalidationMark(
                    .tag(Array("\($0)".utf8)), isSoft: false,
                    version: InvalidationVersion(epoch: 1, count: $0))
            })
        let pieces = many.encodedChunks()
        #expect(pieces.count > 3 && pieces.allSatisfy { $0.count < 50_000 })
        let read = try #require(MarkTable(encodedChunks: pieces, key: key))
        #expect(read.count == many.count)
    }

    @Test("Malformed chunks are refused, and no chunks make an empty table")
    func strangePieces() throws {
        let key = MarkHashKey(first: 3, second: 4)
        let table = MarkTable(
            [
                InvalidationMark(
                    .tag([7]), isSoft: true, version: InvalidationVersion(epoch: 1, count: 1))
            ], key: key)
        let piece = try #require(table.encodedChunks().first)
        for count in 0..<piece.count where count != piece.count - MarkTable.markBytes {
            #expect(MarkTable(encodedChunks: [Array(piece[..<count])], key: key) == nil, "\(count)")
        }
        #expect(
            MarkTable(encodedChunks: [piece, MarkTable().encodedChunks()[0]], key: key) == nil,
            "two keys")
        let empty = try #require(MarkTable(encodedChunks: [], key: key))
        #expect(empty.count == 0 && empty.key == key)
    }
}
