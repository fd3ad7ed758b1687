import Ground
import HTTPRules

extension SplitMix64 {
    static var structured: SplitMix64 { SplitMix64(seed: 9651) }

    mutating func member() -> StructuredMember {
        if Bool.random(using: &self) { return .item(item()) }
        let items = (0..<Int.random(in: 0...3, using: &self)).map { _ in item() }
        return .innerList(StructuredInnerList(items, parameters()))
    }

    mutating func item() -> StructuredItem {
        StructuredItem(bareItem(), parameters())
    }

    mutating func key() -> [UInt8] {
        var key = [byte(of: "abc*".bytes)]
        for _ in 0..<Int.random(in: 0...3, using: &self) { key.append(byte(of: "a9_-.*".bytes)) }
        return key
    }

    private mutating func parameters() -> StructuredParameters {
        var parameters = StructuredParameters()
        for _ in 0..<Int.random(in: 0...2, using: &self) { parameters.set(key(), to: bareItem()) }
        return parameters
    }

    private mutating func bareItem() -> StructuredBareItem {
        let max = StructuredBareItem.integerMax >> Int64.random(in: 0...49, using: &self)
        let number = Int64.random(in: -max...max, using: &self)
        switch Int.random(in: 0..<8, using: &self) {
        case 0: return .integer(number)
        case 1: return .decimal(thousandths: number)
        case 2: return .string(text(of: "a \"\\~,;", upTo: 5).bytes)
        case 3: return .token([byte(of: "aZ*".bytes)] + text(of: "a:/!9", upTo: 4).bytes)
        case 4:
            let count = Int.random(in: 0...7, using: &self)
            return .bytes((0..<count).map { _ in UInt8.random(in: 0...255, using: &self) })
        case 5: return .boolean(Bool.random(using: &self))
        case 6: return .date(number)
        default:
            let scalars = ["a", "%", "\"", "ü", "\n", "🐦", " "]
            let count = Int.random(in: 0...4, using: &self)
            return .displayString(
                (0..<count).map { _ in scalars[Int.random(in: 0..<7, using: &self)] }.joined())
        }
    }
}
