import Admin

/// Compares values with their schemas in the OpenAPI document.
enum ShapeCheck {
    /// The deviations of an operation's response from its schema.
    static func faults(
        _ value: JSON, _ name: AdminOperation.ID, _ status: UInt16 = 200
    ) -> [String] {
        let response = AdminOperation.operation(name).responses.first { $0.status == status }
        guard let shape = response?.content?.schema.json else { return ["\(status) has no shape"] }
        return faults(value, shape, at: "body")
    }

    static func faults(_ value: JSON, _ shape: JSON, at place: String) -> [String] {
        if case .list(let choices) = shape["anyOf"] {
            let found = choices.map { faults(value, $0, at: place) }
            return found.contains([]) ? [] : found.flatMap(\.self)
        }
        if let wanted = shape["const"] { return value == wanted ? [] : ["\(place) is another"] }
        guard case .text(let type) = shape["type"] else { return ["\(place) has no type"] }
        switch (type, value) {
        case ("null", .null), ("boolean", .bool): return []
        case ("integer", .number(let number)), ("number", .number(let number)):
            return range(Double(number), shape, place)
        case ("number", .decimal(let number)): return range(number, shape, place)
        case ("string", .text(let text)): return string(text, shape, place)
        case ("array", .list(let values)): return array(values, shape, place)
        case ("object", .object(let members)): return object(members, shape, place)
        default: return ["\(place) is no \(type): \(value.compactText)"]
        }
    }

    private static func range(_ number: Double, _ shape: JSON, _ place: String) -> [String] {
        if case .number(let least) = shape["minimum"], number < Double(least) {
            return ["\(place) is less than \(least)"]
        }
        if case .number(let most) = shape["maximum"], number > Double(most) {
            return ["\(place) is more than \(most)"]
        }
        return []
    }

    private static func string(_ text: String, _ shape: JSON, _ place: String) -> [String] {
        if case .list(let choices) = shape["enum"], !choices.contains(.text(text)) {
            return ["\(place) is none of its choices: \(text)"]
        }
        if case .text(let pattern) = shape["pattern"],
            let regex = try? Regex(pattern), text.firstMatch(of: regex) == nil
        {
            return ["\(place) does not look as it should: \(text)"]
        }
        return []
    }

    private static func array(_ values: [JSON], _ shape: JSON, _ place: String) -> [String] {
        guard let element = shape["items"] else { return ["\(place) has no items"] }
        if case .number(let least) = shape["minItems"], values.count < least {
            return ["\(place) has \(values.count) elements"]
        }
        return values.enumerated().flatMap { faults($1, element, at: "\(place)[\($0)]") }
    }

    private static func object(
        _ members: [JSON.Member], _ shape: JSON, _ place: String
    ) -> [String] {
        var found: [String] = []
        if case .list(let names) = shape["required"] {
            for case .text(let name) in names where !members.contains(where: { $0.name == name }) {
                found.append("\(place).\(name) is missing")
            }
        }
        for member in members {
            let here = "\(place).\(member.name)"
            if let property = shape["properties"]?[member.name] {
                found += faults(member.value, property, at: here)
            } else if let any = shape["additionalProperties"], case .object = any {
                found += faults(member.value, any, at: here)
            } else if shape["additionalProperties"] == false {
                found.append("\(here) is not known")
            }
        }
        return found
    }
}

extension JSON {
    /// The member of an object.
    subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }
}

extension JSON {
    /// The text as it is sent.
    var text: String { String(decoding: formattedBytes, as: UTF8.self) }
}
