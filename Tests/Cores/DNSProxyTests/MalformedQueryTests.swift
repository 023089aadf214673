import DNSMessage
import DNSProxy
import TestSupport
import Testing

@Suite("Malformed queries")
struct MalformedQueryTests {
    @Test(
        "A6, A11, B4, B6: each malformed query gets the one answer that the list says, or none, and reaches no server")
    func list() throws {
        let codes: [String: ResponseCode] = [
            "FORMERR": .formatError, "NOTIMP": .notImplemented, "BADVERS": .badVersion,
        ]
        var rig = try Rig()
        #expect(MalformedMessage.queries.count > 50)
        for query in MalformedMessage.queries {
            let outcome = rig.ask(query.bytes, by: .tcp)
            if query.reply == "drop" {
                guard case .drop = outcome else {
                    Issue.record("\(query) was not dropped")
                    continue
                }
            } else {
                let answer = try outcome.answer
                #expect(answer.code == codes[query.reply], "\(query)")
                #expect(answer.id == query.bytes.number(at: 0), "\(query)")
            }
        }
        #expect(rig.begun.isEmpty)
    }
}
