/// A document of the admin port, with its members declared once in ``fields``.
///
/// The table gives the text that a node sends, the decoding in a client, and the schema in the
/// OpenAPI document.
package protocol AdminDocument: DocumentValue, Equatable {
    /// A member of the document's JSON object.
    typealias Field = DocumentField<Self>

    /// The members in the order in which they are sent.
    static var fields: [Field] { get }

    /// Creates a document with a default for each member.
    init()
}

extension AdminDocument {
    /// The document as a JSON object.
    package var json: JSON { .object(Self.fields.compactMap { $0.member(self) }) }

    /// The schema of the document.
    package static var schema: JSONSchema { .object(fields.map(\.property)) }

    /// Decodes a document; members that are not in the table are ignored.
    ///
    /// - Throws: the decoder's own errors if a required member is missing or of another type.
    package init(from decoder: any Decoder) throws {
        self.init()
        let container = try decoder.container(keyedBy: JSONKey.self)
        for field in Self.fields { try field.decode(&self, container) }
    }
}

/// A member of a document's JSON object: its name, its value in a `Document`, and its schema.
package struct DocumentField<Document>: Sendable {
    /// A property of the document.
    typealias Path<Value> = any WritableKeyPath<Document, Value> & Sendable

    /// The name and the schema.
    let property: JSONSchema.Property
    /// Returns the value in a document; `nil` if the member is left out.
    private let value: @Sendable (Document) -> JSON?
    /// Sets the value in a document that is decoded.
    let decode: @Sendable (inout Document, KeyedDecodingContainer<JSONKey>) throws -> Void

    /// Returns the member of `document`; `nil` if it is left out.
    func member(_ document: Document) -> JSON.Member? {
        value(document).map { JSON.Member(property.name, $0) }
    }
}

extension DocumentField {
    /// Declares a member that is always sent.
    ///
    /// - Parameters:
    ///   - name: the name in JSON.
    ///   - path: the property.
    ///   - meaning: a clause for the OpenAPI document; empty if the name says enough.
    ///   - schema: the JSON Schema of the value.
    ///   - isLenient: true if a client keeps the default where the member is missing, as in
    ///     documents of older nodes, or of another type.
    /// - Returns: the member.
    static func required<Value: DocumentValue>(
        _ name: String, _ path: Path<Value>, _ meaning: String = "",
        as schema: JSONSchema = Value.schema, isLenient: Bool = false
    ) -> Self {
        Self(property: .required(name, schema, meaning), value: { $0[keyPath: path].json }) {
            document, container in
            if !isLenient {
                document[keyPath: path] = try container.decode(Value.self, forKey: JSONKey(name))
            } else if let value = try? container.decode(Value.self, forKey: JSONKey(name)) {
                document[keyPath: path] = value
            }
        }
    }

    /// Returns a member that is sent as `null` for `nil`; `schema` is that of other values.
    static func nullable<Value: DocumentValue>(
        _ name: String, _ path: Path<Value?>,
        _ meaning: String = "", as schema: JSONSchema = Value.schema
    ) -> Self {
        Self(
            property: .required(name, .nullable(schema), meaning),
            value: { $0[keyPath: path]?.json ?? .null },
            decode: decoder(name, path))
    }

    /// Returns a member that is left out for `nil`.
    static func optional<Value: DocumentValue>(
        _ name: String, _ path: Path<Value?>,
        _ meaning: String = "", as schema: JSONSchema = Value.schema
    ) -> Self {
        Self(
            property: .optional(name, schema, meaning), value: { $0[keyPath: path]?.json },
            decode: decoder(name, path))
    }

    /// Returns a member that follows from the others, so that a client computes it too.
    static func derived<Value: DocumentValue>(
        _ name: String, _ path: any KeyPath<Document, Value> & Sendable, _ meaning: String = ""
    ) -> Self {
        Self(
            property: .required(name, Value.schema, meaning), value: { $0[keyPath: path].json },
            decode: { _, _ in })
    }

    /// Returns the decoding of a member that is `nil` where it is missing or `null`.
    private static func decoder<Value: DocumentValue>(
        _ name: String, _ path: Path<Value?>
    ) -> @Sendable (inout Document, KeyedDecodingContainer<JSONKey>) throws -> Void {
        { document, container in
            document[keyPath: path] =
                try container.decodeIfPresent(Value.self, forKey: JSONKey(name))
        }
    }
}

/// A document that the admin port also lists: `{"members": […]}`.
package protocol ListedDocument: AdminDocument {
    /// The name of the list in JSON.
    static var listName: String { get }
}

/// A list of documents, sent as an object with the list as its only member.
package struct DocumentList<Item: ListedDocument>: AdminDocument {
    /// The documents.
    package var items: [Item] = []

    /// Creates an empty list.
    package init() {}

    /// Creates a list of `items`.
    package init(_ items: [Item]) {
        self.items = items
    }

    /// The list as the only member.
    package static var fields: [Field] { [.required(Item.listName, \.items)] }
}
