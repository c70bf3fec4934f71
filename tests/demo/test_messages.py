import pytest

from loadwise.demo.messages import Assigned, Generation, Message, Processed, Ready, decode, encode


@pytest.mark.parametrize("message", [Ready(), Assigned([1, 5]), Processed([[3, 0, 17]]), Generation(4)])
def test_a_message_is_one_line_and_comes_back(message: Message) -> None:
    line = encode(message)
    assert "\n" not in line
    assert decode(line) == message


@pytest.mark.parametrize("line", ["[]", "{}", '{"kind":"Nothing"}', '{"kind":"Assigned"}', "not json"])
def test_what_is_none_of_ours_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a message|Expecting value"):
        decode(line)
