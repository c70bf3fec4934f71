// What the real kafka-clients answer to a request that is refused as a whole: AbstractRequest.getErrorResponse.
// One request a line on standard input (hex, with its header), the response's body on standard output (hex).

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestHeader;

public class Refusals {
    public static void main(String[] args) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "off");
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            ByteBuffer frame = ByteBuffer.wrap(HexFormat.of().parseHex(lines.nextLine()));
            RequestHeader header = RequestHeader.parse(frame);
            AbstractRequest request =
                AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(), new ByteBufferAccessor(frame)).request;
            ByteBuffer body = MessageUtil.toByteBufferAccessor(
                request.getErrorResponse(0, Errors.REBALANCE_IN_PROGRESS.exception()).data(), header.apiVersion()).buffer();
            byte[] bytes = new byte[body.remaining()];
            body.get(bytes);
            System.out.println(HexFormat.of().formatHex(bytes));
        }
    }
}
