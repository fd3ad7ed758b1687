import Telemetry

extension Setting {
    /// Returns the setting with the name closest to `text`; `nil` if none is close.
    static func nearest(to text: String) -> Setting? {
        Spelling.nearest(to: text, among: table.map { ($0, $0.name) })
    }

    /// Returns the setting with the environment variable closest to `text`; `nil` if none is close.
    static func nearest(toVariable text: String) -> Setting? {
        let prefixCount = environmentPrefix.count
        return Spelling.nearest(
            to: String(text.dropFirst(prefixCount)),
            among: table.map { ($0, String($0.environmentName.dropFirst(prefixCount))) })
    }
}

/// Suggestions for misspelt words.
enum Spelling {
    /// Returns the item whose word has the smallest edit distance from `text`.
    ///
    /// Returns `nil` if that exceeds a third of the length of `text`, but at least 1, and for a
    /// text of more than 64 bytes.
    static func nearest<Name>(to text: String, among words: [(Name, String)]) -> Name? {
        let wanted = Array(text.utf8)
        guard wanted.count <= 64 else { return nil }
        let editsMax = max(1, wanted.count / 3)
        let distances = words.compactMap { name, word -> (Name, Int)? in
            let spelt = Array(word.utf8)
            guard abs(spelt.count - wanted.count) <= editsMax else { return nil }
            return (name, editDistance(wanted, spelt))
        }
        guard let best = distances.min(by: { $0.1 < $1.1 }) else { return nil }
        return best.1 <= editsMax ? best.0 : nil
    }
}

/// Returns the number of insertions, deletions, substitutions and swaps of neighbours between two
/// words.
///
/// This is the optimal string alignment distance: no part is edited twice.
private func editDistance(_ from: [UInt8], _ to: [UInt8]) -> Int {
    var beforeLast = [Int](repeating: 0, count: to.count + 1)
    var last = Array(0...to.count)
    for row in from.indices {
        var current = [row + 1]
        for column in to.indices {
            let isSame = from[row] == to[column]
            var least = min(
                last[column + 1] + 1, current[column] + 1, last[column] + (isSame ? 0 : 1))
            if row > 0, column > 0, from[row] == to[column - 1], from[row - 1] == to[column] {
                least = min(least, beforeLast[column - 1] + 1)
            }
            current.append(least)
        }
        beforeLast = last
        last = current
    }
    return last[to.count]
}
