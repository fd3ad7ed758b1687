/// A dictionary: unique keys with values, in the order in which the keys first occur (RFC 9651
/// §3.2).
package struct StructuredDictionary: Hashable, Sendable {
    /// The entries in order.
    package private(set) var entries: [Entry] = []

    /// A key and its value.
    package struct Entry: Hashable, Sendable {
        /// The key, in lower case by its grammar.
        package let key: [UInt8]
        /// The value of the key.
        package fileprivate(set) var member: StructuredMember

        /// Creates an entry from its parts.
        package init(key: [UInt8], member: StructuredMember) {
            self.key = key
            self.member = member
        }
    }

    /// Creates an empty dictionary.
    package init() {}

    /// True if there are no entries.
    package var isEmpty: Bool { entries.isEmpty }

    /// The value of `key`; `nil` if the key is absent.
    package subscript(key: String) -> StructuredMember? {
        entries.first { $0.key.elementsEqual(key.utf8) }?.member
    }

    /// Sets the value of `key`, which keeps its position if it is present (RFC 9651 §4.2.2).
    package mutating func set(_ key: [UInt8], to member: StructuredMember) {
        if let index = entries.firstIndex(where: { $0.key == key }) {
            entries[index].member = member
        } else {
            entries.append(Entry(key: key, member: member))
        }
    }

    /// Parses a dictionary that fills a field's value; `nil` if any of it is malformed (RFC 9651
    /// §4.2).
    ///
    /// The lines of a field must be joined with commas. An empty value is an empty dictionary; if a
    /// key occurs twice, the last value counts.
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

    /// Appends the serialised dictionary (RFC 9651 §4.1.2).
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

/// A list of items and inner lists (RFC 9651 §3.1).
package struct StructuredList: Hashable, Sendable {
    /// The members in order.
    package var members: [StructuredMember]

    /// Creates a list of these members.
    package init(_ members: [StructuredMember] = []) {
        self.members = members
    }

    /// True if there are no members.
    package var isEmpty: Bool { members.isEmpty }

    /// Parses a list that fills a field's value; `nil` if any of it is malformed (RFC 9651 §4.2).
    ///
    /// The lines of a field must be joined with commas. An empty value is an empty list.
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

    /// Appends the serialised list (RFC 9651 §4.1.1).
    package func append(to bytes: inout [UInt8]) {
        for (index, member) in members.enumerated() {
            if index > 0 { bytes += ", ".utf8 }
            member.append(to: &bytes)
        }
    }
}
