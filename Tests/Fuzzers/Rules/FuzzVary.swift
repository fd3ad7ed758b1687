import Ground
import HTTPRules

/// Field lines of an origin and two clients: Vary, the fields of a request, and of another; also
/// bytes that are read as an index of variants.
///
/// Invariants: names usable for selection can be in an index, which is read back as it was written;
/// a key contains the nominated fields and nothing else; lines of other fields do not change it;
/// parsed index bytes are written back byte by byte.
func fuzzVary(_ input: [UInt8]) {
    if let index = VariantIndex(input.span, at: 0..<input.count) {
        precondition(index.sets.count <= VariantIndex.setsMax)
        precondition(written(index) == input)
    }
    checkKeys(input)
}

/// Checks keys: the first line is Vary's value, every other a field with its name before the colon.
private func checkKeys(_ input: [UInt8]) {
    let rows = input.split(separator: 10, omittingEmptySubsequences: false)
    var vary = VaryNames()
    vary.add(input.span, at: rows[0].indices)
    precondition(vary.names.count <= VariantIndex.namesMax + 1)
    guard vary.isSelectable else { return }
    precondition(VariantIndex.canHold(vary.names))
    let index = VariantIndex(generation: UInt64(input.count)).adding(vary.names)
    let bytes = written(index)
    precondition(VariantIndex(bytes.span, at: 0..<bytes.count) == index)

    let lines = rows.dropFirst().map(line)
    let key = made(index, vary.names, lines, in: input)
    let nominated = lines.filter { vary.names.contains(input.span, at: $0.name.range) }
    precondition(made(index, vary.names, nominated, in: input) == key)
    guard let key else { return }
    let parts = key.split(separator: 10, omittingEmptySubsequences: false)
    precondition(parts.count == vary.names.count + 3 && parts[parts.count - 1].isEmpty)
    for (name, part) in zip(vary.names.names, parts.dropFirst(2)) {
        let one = FieldNames(name)
        let isThere = nominated.contains { one.contains(input.span, at: $0.name.range) }
        precondition(part.starts(with: isThere ? name + [UInt8(ascii: ":")] : name))
        precondition(isThere || part.count == name.count)
    }
}

/// Returns the field line in a row of the input, trimmed as by a parser.
private func line(_ row: ArraySlice<UInt8>) -> FieldLine {
    let colon = row.firstIndex(of: UInt8(ascii: ":")) ?? row.endIndex
    var value = row[min(colon + 1, row.endIndex)...]
    value = value.drop { $0 == 0x20 || $0 == 0x09 }
    while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
    return FieldLine(
        id: .other, name: Extent(start: row.startIndex, count: colon - row.startIndex),
        value: Extent(start: value.startIndex, count: value.count))
}

private func made(
    _ index: VariantIndex, _ names: FieldNames, _ lines: [FieldLine], in bytes: [UInt8]
) -> [UInt8]? {
    let base = Array("//a/b".utf8)
    var key: [UInt8] = []
    let isMade = VariantKey.append(
        base: base.span, generation: index.generation, names: names, lines: lines,
        in: bytes.span, to: &key)
    precondition(isMade || key.isEmpty)
    return isMade ? key : nil
}

private func written(_ index: VariantIndex) -> [UInt8] {
    var bytes: [UInt8] = []
    index.append(to: &bytes)
    return bytes
}

extension FieldNames {
    fileprivate init(_ name: [UInt8]) {
        self.init()
        insert(name.span, at: name.indices)
    }
}
