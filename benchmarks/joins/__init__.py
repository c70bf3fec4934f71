"""How long members stop reading when one joins their group while another one is slow."""
