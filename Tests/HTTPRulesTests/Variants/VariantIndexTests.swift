import Ground
import HTTPRules
import Testing
import Trials

func fieldNames(_ names: String...) -> FieldNames { FieldNames(names) }

@Suite struct VariantIndexTests {
    private func read(_ bytes: [UInt8]) -> VariantIndex? {
        let padded = [9] + bytes + [9]
        return VariantIndex(padded.span, at: 1..<padded.count - 1)
    }

    private func written(_ index: VariantIndex) -> [UInt8] {
        var bytes: [UInt8] = []
        index.append(to: &bytes)
        return bytes
    }

    @Test("The set added last comes first, and each is present once")
    func order() {
        let a = fieldNames("a")
        let b = fieldNames("b", "c")
        let index = VariantIndex(generation: 7).adding(a).adding(b)
        #expect(index.sets == [b, a] && index.generation == 7)
        #expect(index.adding(b) == index)
        #expect(index.adding(a).sets == [a, b])
        #expect(index.adding(FieldNames()).sets == [FieldNames(), b, a])
    }

    @Test("A fifth set replaces the one added least recently")
    func bounded() {
        var index = VariantIndex(generation: 1)
        for name in ["a", "b", "c", "d"] { index = index.adding(fieldNames(name)) }
        index = index.adding(fieldNames("a")).adding(fieldNames("e"))
        #expect(index.sets == [fieldNames("e"), fieldNames("a"), fieldNames("d"), fieldNames("c")])
    }

    @Test("The encoding of an index")
    func bytes() {
        let index = VariantIndex(generation: 0x0102).adding(FieldNames())
            .adding(fieldNames("Accept", "B"))
        let expected = [86, 49, 2, 1, 0, 0, 0, 0, 0, 0, 2, 2, 6] + "accept".bytes + [1, 98, 0]
        #expect(written(index) == expected)
        #expect(read(expected) == index)
        #expect(read([86, 49, 1, 0, 0, 0, 0, 0, 0, 0, 0]) == VariantIndex(generation: 1))
    }

    private static let head: [UInt8] = [86, 49, 1, 0, 0, 0, 0, 0, 0, 0]

    private static let damages: [(String, [UInt8])] = [
        ("nothing", []),
        ("short", [86, 49, 1, 0, 0, 0, 0, 0, 0, 0]),
        ("another mark", [86, 50, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("five sets", head + [5, 0, 1, 1, 97, 1, 1, 98, 1, 1, 99, 1, 1, 100]),
        ("a set missing", head + [1]),
        ("a name missing", head + [1, 1]),
        ("a name cut", head + [1, 1, 2, 97]),
        ("an empty name", head + [1, 1, 0]),
        ("a capital", head + [1, 1, 1, 65]),
        ("no token", head + [1, 1, 1, 58]),
        ("names that descend", head + [1, 2, 1, 98, 1, 97]),
        ("a name twice", head + [1, 2, 1, 97, 1, 97]),
        ("a set twice", head + [2, 1, 1, 97, 1, 1, 97]),
        ("more bytes", head + [1, 1, 1, 97, 0]),
        ("17 names", head + [1, 17] + (0..<17).flatMap { [1, 97 + $0] }),
    ]

    @Test("Malformed bytes are refused", arguments: damages)
    func damaged(what: String, bytes: [UInt8]) {
        #expect(read(bytes) == nil, "\(what)")
    }

    @Test("parse(print(index)) is the index, and print(parse(bytes)) the bytes")
    func roundTrip() {
        var dice = SplitMix64(seed: 71)
        var readable = 0
        for _ in 0..<Trials.count(6000) {
            var index = VariantIndex(generation: dice.next())
            for _ in 0..<Int.random(in: 0...6, using: &dice) {
                var set = FieldNames()
                for _ in 0..<Int.random(in: 0...16, using: &dice) {
                    let name = "n" + dice.text(of: "abcXYZ-_~", upTo: 5)
                    set.formUnion(fieldNames(name))
                }
                index = index.adding(set)
            }
            #expect(index.sets.count <= VariantIndex.setsMax)
            var bytes = written(index)
            #expect(read(bytes) == index)
            for _ in 0...Int.random(in: 0..<3, using: &dice) {
                let place = Int.random(in: 0..<bytes.count, using: &dice)
                switch dice.next() % 3 {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: dice.next())
                case 1: bytes.remove(at: place)
                default: bytes.insert(UInt8(truncatingIfNeeded: dice.next()) & 31, at: place)
                }
            }
            guard let damaged = read(bytes) else { continue }
            readable += 1
            #expect(written(damaged) == bytes)
        }
        #expect(readable > Trials.count(100))
    }
}
