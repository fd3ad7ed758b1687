/// A field that is a list of keys with values: each key once, in the order of their first mention
/// (RFC 9651 §3.2).
package struct StructuredDictionary: Hashable, Sendable {
    package private(set) var entries: [Entry] = []

    /// A key, in lower case by its grammar, and what stands behind it.
    package struct Entry: Hashable, Sendable {
        package let key: [UInt8]
        package fileprivate(set) var member: StructuredMember

        package init(key: [UInt8], member: StructuredMember) {
            self.key = key
            self.member = member
        }
    }

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    /// What stands behind `key`; nil if it is not there.
    package subscript(key: String) -> StructuredMember? {
        entries.first { $0.key.elementsEqual(key.utf8) }?.member
    }

    /// Gives `key` this value, in its old place if it has one (RFC 9651 §4.2.2).
    package mutating func set(_ key: [UInt8], to member: StructuredMember) {
        if let index = entries.firstIndex(where: { $0.key == key }) {
            entries[index].member = member
        } else {
            entries.append(Entry(key: key, member: member))
        }
    }

    /// The dictionary that is the whole of a field's value; nil if any of it is anything else (RFC
    /// 9651 §4.2).
    ///
    /// The lines of a field are to be joined with commas. No bytes at all are an empty dictionary;
    /// of a key that comes twice the last value counts.
    package init?(_ value: Span<UInt8>) {
        var reader = StructuredFieldParser()
        reader.skipSpaces(value)
        var goesOn = !reader.isAtEnd(value)
        while goesOn {
            guard entries.count < StructuredFieldParser.membersMax, let key = reader.key(value),
                let member = reader.dictionaryMember(value), let another = reader.separator(value)
            else { return nil }
            set(key, to: member)
            goesOn = another
        }
    }

    /// Appends it as it is written in a field (RFC 9651 §4.1.2).
    package func append(to bytes: inout [UInt8]) {
        for (index, entry) in entries.enumerated() {
            if index > 0 { bytes += ", ".utf8 }
            bytes += entry.key
            if entry.member.bareItem != .boolean(true) {
                bytes.append(UInt8(ascii: "="))
                entry.member.append(to: &bytes)
            } else {
                entry.member.parameters.append(to: &bytes)
            }
        }
    }
}

/// A field that is a list of items and inner lists (RFC 9651 §3.1).
package struct StructuredList: Hashable, Sendable {
    package var members: [StructuredMember]

    package init(_ members: [StructuredMember] = []) {
        self.members = members
    }

    package var isEmpty: Bool { members.isEmpty }

    /// The list that is the whole of a field's value; nil if any of it is anything else (RFC 9651
    /// §4.2).
    ///
    /// The lines of a field are to be joined with commas. No bytes at all are an empty list.
    package init?(_ value: Span<UInt8>) {
        members = []
        var reader = StructuredFieldParser()
        reader.skipSpaces(value)
        var goesOn = !reader.isAtEnd(value)
        while goesOn {
            guard members.count < StructuredFieldParser.membersMax,
                let member = reader.member(value),
                let another = reader.separator(value)
            else { return nil }
            members.append(member)
            goesOn = another
        }
    }

    /// Appends it as it is written in a field (RFC 9651 §4.1.1).
    package func append(to bytes: inout [UInt8]) {
        for (index, member) in members.enumerated() {
            if index > 0 { bytes += ", ".utf8 }
            member.append(to: &bytes)
        }
    }
}
