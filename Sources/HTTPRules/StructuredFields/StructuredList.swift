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
